import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { type Listener, listenersIn, socketsOf } from '../../../../platform/listeners.ts';
import { connectTo, type Place } from '../../../../platform/place.ts';

/** Sockets by inode, as socketsOf() returns them. */
type Sockets = ReadonlyMap<string, string>;

/** Whether the gateway can reach a service, and why not. `reason`: a message for people. */
export type Reach =
  /** Only sockets of the service listen on its port. */
  | { readonly kind: 'listens'; readonly host: string; readonly sockets: Sockets }
  | { readonly kind: 'waiting'; readonly reason: string }
  /** Another process listens on the port. */
  | { readonly kind: 'taken'; readonly reason: string };

/** Maximum ports in one reason. */
const maxShown = 3;
/** Listen addresses that accept connections to 127.0.0.1 or ::1. */
const reached = ['0.0.0.0', '::', '127.0.0.1', '::1'];

export async function findReach(service: {
  readonly port: number;
  /** The process that holds its network. Null: the network of this machine. */
  readonly holder: number | null;
  /** True: only other services of the Environment reach it, on loopback. */
  readonly isDatabase: boolean;
  readonly pids: () => Promise<readonly number[]>;
  /** Sockets that are known to belong to the service. */
  readonly known: Sockets;
}): Promise<Reach> {
  const { port, holder, isDatabase } = service;
  const everything = (await listenersIn(holder ?? process.pid)) ?? [];
  const all = everything.filter((one) => one.port === port);
  const found = all.filter(({ address }) => reached.includes(address));
  const [unreached] = all;
  if (found.length === 0)
    return {
      kind: 'waiting',
      reason: isDatabase
        ? 'accepts no connections yet'
        : unreached === undefined
          ? `does not listen on port ${port}, which the variable PORT names${await elsewhere(service, everything)}`
          : `listens on ${unreached.address} alone; let it listen on all addresses (0.0.0.0)`,
    };
  let own = service.known;
  if (!found.every(({ inode }) => own.has(inode))) {
    own = await socketsOf(await service.pids());
    if (!found.every(({ inode }) => own.has(inode)))
      return { kind: 'taken', reason: `cannot use port ${port}, on which another process listens` };
  }
  const isOnlyV6 = found.every(({ address }) => address === '::1');
  return {
    kind: 'listens',
    host: isOnlyV6 ? '::1' : '127.0.0.1',
    sockets: new Map(found.map(({ inode }) => [inode, own.get(inode) ?? ''])),
  };
}

/** End of the reason: the ports on which the service listens instead, and the fix, which is `run.port` if the Environment has a network. */
async function elsewhere(
  { holder, pids }: Pick<Parameters<typeof findReach>[0], 'holder' | 'pids'>,
  everything: readonly Listener[],
): Promise<string> {
  if (everything.length === 0) return '';
  const own = await socketsOf(await pids());
  const found = new Set(everything.filter(({ inode }) => own.has(inode)).map(({ port }) => port));
  const [first, ...more] = [...found].toSorted((one, other) => one - other).slice(0, maxShown);
  if (first === undefined) return '';
  const choice = holder === null ? '' : `, or set run.port to ${first}`;
  return `, but on port ${[first, ...more].join(', ')}; let it use PORT${choice}`;
}

const healthTimeoutMs = 5_000;

/** Why the page does not answer 2xx or 3xx, as a message for people. Undefined: it does. */
export async function askHealth(place: Place, page: string): Promise<string | undefined> {
  const signal = AbortSignal.timeout(healthTimeoutMs);
  try {
    // Encodes the path and drops a host that the page could name.
    const { pathname, search } = new URL(page, 'http://service');
    const request = get({
      host: place.host,
      port: place.port,
      path: pathname + search,
      signal,
      createConnection: () => connectTo(place),
    });
    request.on('error', () => undefined);
    // The types of events do not name their arguments.
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.on('error', () => undefined).destroy();
    const status = response.statusCode ?? 0;
    return status >= 200 && status < 400 ? undefined : `answers ${status} to GET ${page}`;
  } catch {
    return `does not answer GET ${page}`;
  }
}
