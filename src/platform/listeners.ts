import { readlinkSync } from 'node:fs';
import { opendir, readlink } from 'node:fs/promises';
import { startOf } from './processes.ts';

/** A TCP socket that listens. `inode` names it, as long as it exists. */
export type Listener = { readonly address: string; readonly port: number; readonly inode: string };

/** Bounds for what is read: a tenant chooses how many sockets its network namespace has, and how many files its process. */
const [maxTableBytes, maxDescriptors] = [1024 ** 2, 10_000];
/** In the third column of proc_net(5). */
const listening = '0A';

/** The result of listenersIn() for one port. */
export async function listenersOn(port: number, pid: number): Promise<Listener[] | undefined> {
  return (await listenersIn(pid))?.filter((one) => one.port === port);
}

/**
 * The sockets that listen in the network namespace of process `pid`. Undefined: the process has ended. IPv4
 * addresses that are mapped into IPv6 are returned as IPv4.
 */
export async function listenersIn(pid: number): Promise<Listener[] | undefined> {
  const tables = await Promise.all(
    // A kernel without IPv6 has no second table.
    ['tcp', 'tcp6'].map((name) => startOf(`/proc/${pid}/net/${name}`, maxTableBytes)),
  );
  if (tables[0] === '') return undefined;
  return tables.flatMap((table) =>
    table
      .split('\n')
      .slice(1)
      .flatMap((line) => {
        const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
        const [address = '', hex = ''] = local.split(':');
        if (state !== listening) return [];
        return [{ address: addressOf(address), port: Number.parseInt(hex, 16), inode }];
      }),
  );
}

/** The sockets that these processes have open, by inode: each with a file of proc(5) that leads to it. */
export async function socketsOf(pids: readonly number[]): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const pid of pids) {
    const folder = `/proc/${pid}/fd`;
    const names = await firstNames(folder, maxDescriptors).catch(() => []);
    const targets = await Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(() => '')));
    for (const [at, target] of targets.entries()) {
      const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
      if (inode !== undefined) found.set(inode, `${folder}/${names[at]}`);
    }
  }
  return found;
}

/** Whether a socket that socketsOf() found is still open. Costs some microseconds; listenersOn() walks through all sockets. */
export function isOpen([inode, file]: readonly [string, string]): boolean {
  try {
    return readlinkSync(file) === `socket:[${inode}]`;
  } catch {
    return false;
  }
}

async function firstNames(folder: string, max: number): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of await opendir(folder)) {
    names.push(name);
    if (names.length === max) break;
  }
  return names;
}

/** From words of 32 bits in the byte order of the processor, which is little-endian on those that Node supports for Linux. */
function addressOf(hex: string): string {
  const words = hex.match(/.{8}/g) ?? [];
  const bytes = words.flatMap((word) => (word.match(/../g) ?? []).toReversed());
  const isMapped =
    bytes.length === 16 && bytes.slice(0, 12).join('') === '00000000000000000000ffff'.toUpperCase();
  if (bytes.length === 4 || isMapped)
    return bytes
      .slice(-4)
      .map((byte) => Number.parseInt(byte, 16))
      .join('.');
  const groups = Array.from({ length: 8 }, (_, at) =>
    Number.parseInt(bytes.slice(2 * at, 2 * at + 2).join(''), 16),
  );
  if (groups.every((group) => group === 0)) return '::';
  return groups.slice(0, 7).every((group) => group === 0)
    ? `::${groups[7]?.toString(16)}`
    : groups.map((group) => group.toString(16)).join(':');
}
