import { existsSync, lstatSync, readlinkSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GroupLimits } from './cgroups.ts';
import { removeFolder } from './folders.ts';
import { giveToTenant, sourceAt, tenantUser } from './tenant.ts';

/**
 * The arguments of bubblewrap (bwrap(1)) for one build or service: separate namespaces, the programs of this machine read-only,
 * and otherwise only the folder of the build. So DATA_DIR, SECRETS_DIR, HOME, sockets of services and the files of other
 * builds are not hidden one by one: the sandbox never contains them.
 */
export type SandboxPlaces = {
  /** Folder of this build or service on this machine. */
  readonly folder: string;
  /** Path in the sandbox. */
  readonly workingDirectory: string;
  readonly env: Readonly<Record<string, string>>;
  /** `holder`: a process whose network is entered before the sandbox starts. */
  readonly network: Network | { readonly holder: number };
  /** Additional visible paths of this machine. Absent: none. */
  readonly binds?: readonly Bind[];
};

/** A path of this machine and its path in the sandbox, read-only by default. */
export type Bind = { readonly source: string; readonly place: string; readonly isForWriting?: boolean };

/** Isolation of commands. `process`: none. */
export type Isolation =
  | { readonly kind: 'process' }
  | {
      readonly kind: 'bwrap';
      readonly network: Network;
      /** Parent of the control groups of commands. Null: the kernel does not limit memory (cgroups.ts). */
      readonly groups: string | null;
    };

/** `own`: through slirp4netns, without access to this machine. `shared`: loopback and other builds can be reached. */
export type Network = 'own' | 'shared';

/** Parameters that start a sandbox. */
export type Sandbox = {
  /** Arguments of bwrap(1). */
  readonly args: readonly string[];
  /** Paths of this machine that the arguments name with sourceAt() (tenant.ts). Empty: the arguments name them directly. */
  readonly sources: readonly string[];
  /** `holder`: a process whose network exists already. */
  readonly network: Network | { readonly holder: number };
  readonly searchPath: string;
  /** Null: the kernel does not limit memory. `parent`, `name`: arguments of makeGroup(). */
  readonly group: ({ readonly parent: string; readonly name: string } & GroupLimits) | null;
};

/** Paths of a build's files in the sandbox. */
export const inSandbox = {
  work: '/build',
  home: '/home/build',
  tmp: '/tmp',
  secrets: '/run/secrets',
} as const;

/** Writable folders in the folder of a build or service. `shm` there uses disk, not memory of the machine. */
const writtenFolders = ['work', 'home', 'tmp', 'shm'] as const;
const commandFolders = [...writtenFolders, 'secrets', 'etc'];

/** Creates the folders of a command and replaces existing ones. */
export async function makeCommandFolders(folder: string): Promise<void> {
  for (const name of commandFolders) {
    await removeFolder(join(folder, name));
    await mkdir(join(folder, name), { recursive: true, mode: 0o700 });
  }
}

/** Call it after the files of a command are in its folder and before the sandbox starts. */
export async function prepareSandbox(folder: string, network: SandboxPlaces['network']): Promise<void> {
  await writeConfiguration(join(folder, 'etc'), network);
  for (const name of commandFolders) await giveToTenant(join(folder, name));
  // Logs and records in the same folder stay with Postern.
  if (tenantUser !== null) await chmod(folder, 0o711);
}

const programFolders = ['/usr', '/opt', '/nix'];
/** Most systems link these to /usr. */
const programLinks = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
/** Files of /etc that programs need. Others can contain secrets that root can read. */
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
 * The owner can write these files with any capabilities and in any user namespace (proc(5)). No user of a sandbox is root
 * (tenant.ts); this is a second barrier. A command cannot remove these mounts, because bwrap's namespace is locked
 * (mount_namespaces(7)), and with them the kernel allows no new /proc.
 */
const kernelSettings = ['/proc/sys', '/proc/sysrq-trigger', '/proc/irq', '/proc/bus', '/proc/fs'];
const devices = ['null', 'zero', 'full', 'random', 'urandom', 'tty'];
/** Name server of slirp4netns(1), which forwards queries to the name servers of this machine. */
const slirpNameServer = '10.0.2.3';
/** Any user except root: programs of root try to change the owner of files. */
const user = '1000';

/** `hidden`: paths that are hidden even below folders with programs. */
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
    // --dev would need a second user namespace, which slirp4netns cannot enter.
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

/** `folder`: a folder that only this command uses. */
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

/** Writes files of /etc for the user of the build. Those of this machine would reveal its users and neighbours. */
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
