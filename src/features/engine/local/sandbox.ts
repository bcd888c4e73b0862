import { existsSync, lstatSync, readlinkSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GroupLimits } from './cgroups.ts';
import { removeFolder } from './folders.ts';
import { giveToTenant, sourceAt, tenantUser } from './tenant.ts';

/**
 * The arguments of bubblewrap (bwrap(1)) for one build or service: namespaces of its own, the programs of this machine read-only, and of
 * everything else the folder of the build alone. So DATA_DIR, SECRETS_DIR, HOME, sockets of services and the files of other
 * builds are not hidden one by one: they are never there.
 */
export type SandboxPlaces = {
  /** Of this build or service, on this machine. */
  readonly folder: string;
  /** In the sandbox. */
  readonly workingDirectory: string;
  readonly env: Readonly<Record<string, string>>;
  /** Or the one of a process, which is entered before. */
  readonly network: Network | { readonly holder: number };
  /** More places of this machine that are visible. Absent: none. */
  readonly binds?: readonly Bind[];
};

/** A place of this machine, and where it is in the sandbox: read-only, unless it is for writing. */
export type Bind = { readonly source: string; readonly place: string; readonly isForWriting?: boolean };

/** What a command cannot reach. `process`: nothing is kept from it. */
export type Isolation =
  | { readonly kind: 'process' }
  | {
      readonly kind: 'bwrap';
      readonly network: Network;
      /** The control group in which those of commands are made. Null: the kernel limits no memory here (cgroups.ts). */
      readonly groups: string | null;
    };

/** `own`: through slirp4netns, without a way to this machine. `shared`: loopback and other builds can be reached. */
export type Network = 'own' | 'shared';

/** What starts a sandbox. */
export type Sandbox = {
  /** Arguments of bwrap(1). */
  readonly args: readonly string[];
  /** Places of this machine that the arguments name as sourceAt() does (tenant.ts). Empty: they name them as they are. */
  readonly sources: readonly string[];
  /** Or the one of a process, which exists already. */
  readonly network: Network | { readonly holder: number };
  readonly searchPath: string;
  /** Null: the kernel limits no memory here. `parent`, `name`: as makeGroup() takes them. */
  readonly group: ({ readonly parent: string; readonly name: string } & GroupLimits) | null;
};

/** Where a build finds its files in the sandbox. */
export const inSandbox = {
  work: '/build',
  home: '/home/build',
  tmp: '/tmp',
  secrets: '/run/secrets',
} as const;

/** Folders that a command writes, in the folder of its build or service. `shm` counts as disk there, and not as memory of the machine. */
const writtenFolders = ['work', 'home', 'tmp', 'shm'] as const;
const commandFolders = [...writtenFolders, 'secrets', 'etc'];

/** Makes the folders of a command, in place of those that exist. */
export async function makeCommandFolders(folder: string): Promise<void> {
  for (const name of commandFolders) {
    await removeFolder(join(folder, name));
    await mkdir(join(folder, name), { recursive: true, mode: 0o700 });
  }
}

/** Call it when the files of a command are in its folder, before the sandbox starts. */
export async function prepareSandbox(folder: string, network: SandboxPlaces['network']): Promise<void> {
  await writeConfiguration(join(folder, 'etc'), network);
  for (const name of commandFolders) await giveToTenant(join(folder, name));
  // Logs and records beside them stay with Postern.
  if (tenantUser !== null) await chmod(folder, 0o711);
}

const programFolders = ['/usr', '/opt', '/nix'];
/** Links to /usr on most systems. */
const programLinks = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
/** What programs need. The rest of /etc can hold secrets that root reads. */
const configuration = [
  '/etc/alternatives',
  '/etc/ca-certificates.conf',
  '/etc/ld.so.cache',
  '/etc/ld.so.conf',
  '/etc/ld.so.conf.d',
  '/etc/localtime',
  '/etc/nsswitch.conf',
  '/etc/pki/tls/certs',
  '/etc/ssl/certs',
  '/etc/ssl/openssl.cnf',
];
/**
 * The kernel lets their owner write these, with any capabilities and in any user namespace (proc(5)). No user of a sandbox is
 * root (tenant.ts); this is a second barrier. These mounts cannot be removed there, because bwrap's namespace is locked
 * (mount_namespaces(7)), and with them the kernel allows no new /proc.
 */
const kernelSettings = ['/proc/sys', '/proc/sysrq-trigger', '/proc/irq', '/proc/bus', '/proc/fs'];
const devices = ['null', 'zero', 'full', 'random', 'urandom', 'tty'];
/** Of slirp4netns(1), which forwards queries to the name servers of this machine. */
const slirpNameServer = '10.0.2.3';
/** Any user but root, who would try to give files to others. */
const user = '1000';

/** `hidden`: places that are not visible, also below folders with programs. */
export function sandboxOf(
  { folder, workingDirectory, env, network, binds = [] }: SandboxPlaces,
  hidden: readonly string[],
): Pick<Sandbox, 'args' | 'sources'> {
  const sources = tenantUser === null ? [] : [folder, ...binds.map(({ source }) => source)];
  const from = (source: string) => (tenantUser === null ? source : sourceAt(sources.indexOf(source)));
  const own = (...names: string[]) => join(from(folder), ...names);
  const isHidden = (path: string) => hidden.some((one) => path === one || path.startsWith(`${one}/`));
  const programs = programFolders.filter((path) => existsSync(path) && !isHidden(path));
  const args = [
    ...['user', 'pid', 'ipc', 'uts'].map((namespace) => `--unshare-${namespace}`),
    '--unshare-cgroup-try',
    ...(network === 'own' ? ['--unshare-net'] : []),
    '--uid',
    user,
    '--gid',
    user,
    '--hostname',
    'build',
    '--cap-drop',
    'ALL',
    '--die-with-parent',
    ...programs.flatMap((path) => ['--ro-bind', path, path]),
    ...programLinks.flatMap(linkOrBind),
    ...hidden
      .filter((path) => existsSync(path) && programs.some((one) => path.startsWith(`${one}/`)))
      .flatMap((path) => ['--tmpfs', path, '--remount-ro', path]),
    ...configuration.flatMap((path) => ['--ro-bind-try', path, path]),
    ...['passwd', 'group', 'hosts', 'resolv.conf'].flatMap((name) => [
      '--ro-bind',
      own('etc', name),
      `/etc/${name}`,
    ]),
    '--proc',
    '/proc',
    ...kernelSettings.flatMap((path) => ['--ro-bind-try', path, path]),
    '--tmpfs',
    '/dev',
    // Without --dev: it needs a second user namespace, which slirp4netns cannot enter.
    ...devices.flatMap((name) => ['--dev-bind', `/dev/${name}`, `/dev/${name}`]),
    '--symlink',
    '/proc/self/fd',
    '/dev/fd',
    '--bind',
    own('shm'),
    '/dev/shm',
    ...['stdin', 'stdout', 'stderr'].flatMap((name, at) => ['--symlink', `fd/${at}`, `/dev/${name}`]),
    ...(['work', 'home', 'tmp'] as const).flatMap((name) => ['--bind', own(name), inSandbox[name]]),
    '--ro-bind',
    own('secrets'),
    inSandbox.secrets,
    ...binds.flatMap(({ source, place, isForWriting = false }) => [
      isForWriting ? '--bind' : '--ro-bind',
      from(source),
      place,
    ]),
    '--remount-ro',
    '/dev',
    '--remount-ro',
    '/',
    '--chdir',
    workingDirectory,
    '--clearenv',
    ...Object.entries(env).flatMap(([name, value]) => ['--setenv', name, value]),
  ];
  return { args, sources };
}

/** `folder`: of the command alone. */
export function groupOf(isolation: Isolation, folder: string, limits: GroupLimits): Sandbox['group'] {
  if (isolation.kind === 'process' || isolation.groups === null) return null;
  return { parent: isolation.groups, name: folder, ...limits };
}

function linkOrBind(path: string): string[] {
  if (!existsSync(path)) return [];
  return lstatSync(path).isSymbolicLink()
    ? ['--symlink', readlinkSync(path), path]
    : ['--ro-bind', path, path];
}

/** Files of /etc for the user of the build. Those of this machine name its users and its neighbours. */
async function writeConfiguration(folder: string, network: SandboxPlaces['network']): Promise<void> {
  const nameServers =
    network === 'shared'
      ? await readFile('/etc/resolv.conf', 'utf8').catch(() => '')
      : `nameserver ${slirpNameServer}\n`;
  const files = {
    passwd: `build:x:${user}:${user}::${inSandbox.home}:/bin/sh\n`,
    group: `build:x:${user}:\n`,
    hosts: '127.0.0.1 localhost build\n::1 localhost\n',
    'resolv.conf': nameServers,
  };
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
}
