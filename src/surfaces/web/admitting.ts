import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import { isLimitedChange, type Route } from '../../platform/http.ts';
import type { Authenticated, Gate } from './gate.ts';

/** All steps before the body is read. Returns no promise when there is nothing to wait for. */
export function admitTo(route: Route, { gate, uiOrigin }: { gate: Gate; uiOrigin: string }) {
  const isLimited = isLimitedChange(route);

  function admit(
    request: FastifyRequest,
    reply: FastifyReply,
    found: Authenticated,
  ): Refusal | Promise<Refusal> {
    if (found instanceof AppError) return found;
    request.caller = found;
    if (!route.exemptFromLimit) gate.limit(request, reply);
    if (found.kind === 'session') checkOrigin(request, uiOrigin);
    // After the origin check, so that another site's page cannot use up a person's changes.
    const counted = isLimited ? gate.limitChange(found) : undefined;
    return counted === undefined ? judge(found) : counted.then(() => judge(found));
  }

  function judge(found: Caller): Refusal | Promise<Refusal> {
    const asked = gate.principal(found, route.policy);
    if (asked instanceof Promise) {
      return asked.then((facts) => {
        gate.authorize(found, route.policy, facts);
        return undefined;
      });
    }
    gate.authorize(found, route.policy, asked);
    return undefined;
  }

  function start(request: FastifyRequest, reply: FastifyReply): Refusal | Promise<Refusal> {
    const found = gate.authenticate(request);
    return found instanceof Promise
      ? found.then((caller) => admit(request, reply, caller))
      : admit(request, reply, found);
  }

  return (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => {
    let admitted: Refusal | Promise<Refusal>;
    try {
      admitted = start(request, reply);
    } catch (error) {
      return done(error as Error);
    }
    if (admitted instanceof Promise) void finish(admitted, done);
    else done(admitted);
  };
}

type Refusal = AppError | undefined;

/** Fastify's hooks take a callback; awaiting keeps a failure of the next step from being reported as ours. */
async function finish(admitted: Promise<Refusal>, done: (error?: Error) => void): Promise<void> {
  let failure: Error | undefined;
  try {
    failure = await admitted;
  } catch (error) {
    failure = error as Error;
  }
  done(failure);
}

/** Browsers attach the session cookie automatically, so a write must prove that our own page made it (CS-01). */
function checkOrigin(request: FastifyRequest, uiOrigin: string): void {
  if (request.method === 'GET' || request.method === 'HEAD') return;
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (origin !== uiOrigin || (site !== undefined && site !== 'same-origin'))
    throw new AppError('forbidden_origin');
}
