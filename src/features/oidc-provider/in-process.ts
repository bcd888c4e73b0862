import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { inject } from 'light-my-request';
import { bodyText, type Fetch } from '../../platform/fetch.ts';

/**
 * A fetch that calls the built-in provider without a network: the same code path as for any other provider. It works
 * even when this process cannot reach its own public address behind a proxy.
 */
export function inProcessFetch(listener: () => RequestListener): Fetch {
  return async (url, { method, headers, body, signal }) => {
    signal?.throwIfAborted();
    const target = new URL(url);
    const aborted = new Promise<never>((_, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });
    const answered = inject(listener(), {
      // light-my-request knows any method; its own type lists only the usual ones.
      method: method as 'GET',
      url: target.pathname + target.search,
      headers: { ...headers, host: target.host },
      ...(body === undefined || body === null ? {} : { payload: bodyText(body) }),
    });
    const answer = await Promise.race([answered, aborted]);
    return new Response(hasNoBody(answer.statusCode) ? null : answer.payload, {
      status: answer.statusCode,
      headers: answerHeaders(answer.headers),
    });
  };
}

function hasNoBody(status: number): boolean {
  return status === 204 || status === 304;
}

function answerHeaders(headers: Record<string, unknown>): [string, string][] {
  return Object.entries(headers)
    .filter(([name, value]) => value !== undefined && name !== 'set-cookie')
    .map(([name, value]) => [name, String(value)]);
}

/**
 * Passes a request to the provider as if it were mounted at the root, with the public address of this installation. The
 * provider builds its URLs from these headers, so a client's own Host or X-Forwarded-* must not reach it.
 */
export function mountAt(
  handle: (request: IncomingMessage, response: ServerResponse) => unknown,
  {
    mountPath,
    uiOrigin,
    path,
    address,
  }: { mountPath: string; uiOrigin: string; path: string; address: string },
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const origin = new URL(uiOrigin);
  request.headers.host = origin.host;
  request.headers['x-forwarded-host'] = origin.host;
  request.headers['x-forwarded-proto'] = origin.protocol.slice(0, -1);
  request.headers['x-forwarded-for'] = address;
  request.url = path;
  // oidc-provider derives its mount point by comparing `url` and `originalUrl`.
  Object.assign(request, { originalUrl: mountPath + path });
  handle(request, response);
}
