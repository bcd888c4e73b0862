import { execFile } from 'node:child_process';
import { lstat } from 'node:fs/promises';
import { promisify } from 'node:util';

const runProgram = promisify(execFile);

/**
 * Commands of tenants never run as root: to the kernel, a process of a sandbox is still the user who started it. If Postern is
 * root, this user starts sandboxes and their networks. No other program uses this number, which systemd leaves unused
 * (its UIDS-GIDS page) and which exists in containers too. Null: Postern is not root, and starts them as itself.
 */
export const tenantUser: number | null = process.getuid?.() === 0 ? 65_533 : null;

/** Exists only in the file system that a command sees before its sandbox is created. */
const sourcesFolder = '/mnt';

/**
 * Makes each path of this machine reachable for the user, who may not be able to enter its parent folders. A device is replaced
 * by one that the user can open.
 */
const script = `set -e
mount -t tmpfs -o mode=755,size=1m tmpfs ${sourcesFolder}
count=0
while [ "$1" != -- ]; do
  place=${sourcesFolder}/$count
  if [ -c "$1" ]; then
    cp -a "$1" "$place"
    chmod 666 "$place"
    mount --bind "$place" "$1"
  else
    if [ -d "$1" ]; then mkdir "$place"; else : >"$place"; fi
    mount --bind "$1" "$place"
  fi
  count=$((count + 1))
  shift
done
shift
exec "$@"`;

/**
 * Arguments that start a program as the user of tenants, if there is one. The program finds the file or folder `sources[n]` of
 * this machine at `sourceAt(n)`, and a device at its usual path.
 */
export function asTenant(words: readonly string[], sources: readonly string[] = []): string[] {
  if (tenantUser === null) return [...words];
  const user = String(tenantUser);
  const own = ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', '--', ...words];
  if (sources.length === 0) return own;
  const mounts = ['unshare', '--mount', '--propagation=private', '--', '/bin/sh', '-c', script, 'sh'];
  return [...mounts, ...sources, '--', ...own];
}

export function sourceAt(index: number): string {
  return `${sourcesFolder}/${index}`;
}

/** Gives a folder and its content to the user of tenants. Call it while no command of a tenant runs there. */
export async function giveToTenant(folder: string): Promise<void> {
  if (tenantUser === null || (await lstat(folder)).uid === tenantUser) return;
  // chown -h changes a link and never its target. The folder comes last, so that an interrupted call is repeated.
  await runProgram('find', [
    folder,
    '-depth',
    '-exec',
    'chown',
    '-h',
    `${tenantUser}:${tenantUser}`,
    '{}',
    '+',
  ]);
}
