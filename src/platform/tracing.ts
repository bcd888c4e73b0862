import type { IncomingMessage } from 'node:http';
import {
  context,
  propagation,
  ProxyTracerProvider,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { trustedPeers } from './trusted-proxies.ts';

/**
 * OpenTelemetry, for operators who load an SDK before the program (docs/how-to/trace-requests.md, decision 0029). Records
 * a span for every request and for each call that it waits for. A span contains a method, a route, a status, a statement
 * without its values and the name of a call; nothing that a client sent.
 */
export type Tracing = {
  /**
   * Continues a trace that one of our proxies began; a `traceparent` from anyone else is ignored (W3C Trace Context
   * section 3).
   */
  request(request: Pick<IncomingMessage, 'method' | 'headers' | 'socket'>, route?: string): RequestSpan;
  /** Returns the same object, with a span for each call of its methods, named `name method`. */
  around<Part extends object>(name: string, part: Part): Part;
  /** The same, for a single function. */
  aroundCall<Args extends unknown[], Result>(
    name: string,
    call: (...args: Args) => Result,
  ): (...args: Args) => Result;
  /** Records a completed statement, as the database reads it, with `$1` for each value. */
  statement(text: string, tookMs: number, isFailed: boolean): void;
  /** The trace and span ids for a log line. */
  ids(): { readonly trace_id?: string; readonly span_id?: string };
};

export type RequestSpan = {
  /** Everything done in `work` belongs to the request. */
  run<Result>(work: () => Result): Result;
  end(status: number): void;
};

const scope = 'postern';

/** Null when no SDK was loaded: then nothing is traced, and it costs nothing. `trustedProxies`: TRUSTED_PROXIES. */
export function openTracing(trustedProxies: readonly string[]): Tracing | null {
  const provider = trace.getTracerProvider();
  if (provider instanceof ProxyTracerProvider && provider.getDelegateTracer(scope) === undefined) return null;
  const tracer = provider.getTracer(scope);
  const isOurs = trustedPeers(trustedProxies);

  function aroundCall<Args extends unknown[], Result>(name: string, call: (...args: Args) => Result) {
    return (...args: Args): Result => {
      const span = tracer.startSpan(name, { kind: SpanKind.CLIENT });
      let isLater = false;
      try {
        const result = context.with(trace.setSpan(context.active(), span), () => call(...args));
        if (!(result instanceof Promise)) return result;
        isLater = true;
        result.then(
          () => span.end(),
          (error: unknown) => endFailed(span, error),
        );
        return result;
      } catch (error) {
        isLater = true;
        endFailed(span, error);
        throw error;
      } finally {
        if (!isLater) span.end();
      }
    };
  }

  return {
    request({ method = 'GET', headers, socket }, route) {
      const outside = context.active();
      const parent = isOurs(socket.remoteAddress) ? propagation.extract(outside, headers) : outside;
      const span = tracer.startSpan(
        nameOf(method, route),
        {
          kind: SpanKind.SERVER,
          attributes: {
            'http.request.method': method,
            ...(route === undefined ? {} : { 'http.route': route }),
          },
        },
        parent,
      );
      const inside = trace.setSpan(parent, span);
      return {
        run: (work) => context.with(inside, work),
        end(status) {
          span.setAttribute('http.response.status_code', status);
          if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
          span.end();
        },
      };
    },
    around(name, part) {
      return new Proxy(part, {
        get(target, property) {
          const value: unknown = Reflect.get(target, property, target);
          if (typeof value !== 'function' || typeof property !== 'string') return value;
          return aroundCall(`${name} ${property}`, (...args: unknown[]): unknown =>
            Reflect.apply(value, target, args),
          );
        },
      });
    },
    aroundCall,
    statement(text, tookMs, isFailed) {
      const [operation = 'statement'] = text.trim().split(/\s/, 1);
      const span = tracer.startSpan(operation.toUpperCase(), {
        kind: SpanKind.CLIENT,
        startTime: Date.now() - tookMs,
        attributes: { 'db.system.name': 'postgresql', 'db.query.text': text },
      });
      if (isFailed) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    },
    ids() {
      const at = trace.getSpanContext(context.active());
      return at === undefined ? {} : { trace_id: at.traceId, span_id: at.spanId };
    },
  };
}

/** Span names come from a small set and never from a client's input (OpenTelemetry, semantic conventions for HTTP spans). */
function nameOf(method: string, route: string | undefined): string {
  return route === undefined ? method : `${method} ${route}`;
}

/** Records the error's type but not its message, which may contain what a client sent. */
function endFailed(span: Span, error: unknown): void {
  if (error instanceof Error) span.setAttribute('error.type', error.name);
  span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}
