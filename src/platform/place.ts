import { closeSync, openSync } from 'node:fs';
import { connect, type Socket, type SocketConstructorOpts } from 'node:net';
import { basename, dirname } from 'node:path';

/**
 * Where a server listens. `relay`: path of the Unix socket of a relay in the network of the server. Its first line names the host and
 * the port to which it connects there.
 */
export type Place = { readonly host: string; readonly port: number; readonly relay?: string };

export function textOf({ host, port, relay }: Place): string {
  return relay === undefined ? `${host}:${port}` : `${host}:${port}@${relay}`;
}

/** Reads what textOf() wrote. */
export function placeOf(text: string): Place {
  const [, host, port, relay] = /^\[?([^\]/@?#\s]+)\]?:(\d{1,5})(?:@(\/[^\0]+))?$/.exec(text) ?? [];
  if (host === undefined || port === undefined) throw new Error(`${text} is not a host and a port.`);
  return { host, port: Number(port), ...(relay === undefined ? {} : { relay }) };
}

export function connectTo(
  { host, port, relay }: Place,
  options: Pick<SocketConstructorOpts, 'onread'> = {},
): Socket {
  if (relay === undefined) return connect({ host, port, noDelay: true, ...options });
  const folder = openFolder(dirname(relay));
  // A path of a socket has at most 107 bytes (unix(7)), so an open file stands for its folder.
  const path = folder === null ? relay : `/proc/self/fd/${folder}/${basename(relay)}`;
  const socket = connect({ path, ...options });
  // Node has connected, or failed to.
  if (folder !== null) closeSync(folder);
  socket.write(`${host}:${port}\n`);
  return socket;
}

/** Null: the folder no longer exists, nor does the socket. */
function openFolder(path: string): number | null {
  try {
    return openSync(path, 'r');
  } catch {
    return null;
  }
}
