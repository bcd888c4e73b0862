import type { HttpRequest } from '../../platform/fast-http/fast-server.ts';

/**
 * Requests for processes that are asleep wait here until they are awake. The gateway does not read their bodies meanwhile.
 * A request that would wait too long, or that finds too many waiting, gets a page that reloads itself.
 */
export type HeldRequests = {
  /** Resolves true when it is awake, and false when it cannot wait for that or its client has left. */
  wait(request: HttpRequest, asleep: Asleep): Promise<boolean>;
};

export type Asleep = {
  readonly environmentId: string;
  readonly service: string;
  /** State that this process knows now. Rejects when it cannot be read. */
  readonly isAsleep: () => boolean | Promise<boolean>;
};

const maxOfService = 32;
const maxOfAll = 256;
const maxMs = 30_000;
const lookMs = 100;
const maxBodyBytes = 1_048_576;

export function createHeldRequests(deps: {
  /** The signal may be lost. Rejects while the key-value store is unavailable. */
  readonly askToWake: (environmentId: string) => Promise<void>;
  /** Resolves after this many milliseconds. */
  readonly pause: (ms: number) => Promise<void>;
}): HeldRequests {
  /** Requests that wait, by service. */
  const held = new Map<string, number>();
  const waking = new Map<string, Promise<boolean>>();

  async function wake({ environmentId, isAsleep }: Asleep): Promise<boolean> {
    for (let waitedMs = 0; waitedMs < maxMs; waitedMs += lookMs) {
      // While either store is unavailable no request passes, and the next check retries.
      await deps.askToWake(environmentId).catch(() => undefined);
      await deps.pause(lookMs);
      try {
        if (!(await isAsleep())) return true;
      } catch {
        continue;
      }
    }
    return false;
  }

  /** All that wait for one service look together. */
  function wakeOnce(name: string, asleep: Asleep): Promise<boolean> {
    const known = waking.get(name);
    if (known !== undefined) return known;
    const begun = wake(asleep).finally(() => waking.delete(name));
    waking.set(name, begun);
    return begun;
  }

  return {
    async wait(request, asleep) {
      const name = `${asleep.environmentId} ${asleep.service}`;
      const others = held.get(name) ?? 0;
      const ofAll = [...held.values()].reduce((sum, count) => sum + count, 0);
      if (others >= maxOfService || ofAll >= maxOfAll || hasLargeBody(request)) return false;
      held.set(name, others + 1);
      const left = Promise.withResolvers<boolean>();
      const leave = () => left.resolve(false);
      request.socket.once('close', leave);
      try {
        return await Promise.race([wakeOnce(name, asleep), left.promise]);
      } finally {
        request.socket.off('close', leave);
        const rest = (held.get(name) ?? 1) - 1;
        if (rest === 0) held.delete(name);
        else held.set(name, rest);
      }
    },
  };
}

/** A body without a length may be of any length. */
function hasLargeBody({ headers }: HttpRequest): boolean {
  if (headers['transfer-encoding'] !== undefined) return true;
  return Number(headers['content-length'] ?? 0) > maxBodyBytes;
}
