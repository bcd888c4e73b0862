import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { createFairQueue, type FairQueue } from '../fair-queue.ts';
import type { Outbound } from '../outbound.ts';
import { type FolderOptions, stagingFolder } from '../staging-folder.ts';
import { failed, failedRun, type GitAnswer, ok } from './answers.ts';
import { type Selected, select, type Selection } from './check-out.ts';
import { type FileAtCommit, fileInMirror, type MirrorAccess, orRemove } from './mirror.ts';

export type { FileAtCommit } from './mirror.ts';
import { type GitConfig, runGit } from './run-git.ts';
import { knownHostsName, remoteAddress } from './remote.ts';

/**
 * Reads repositories that other servers host, with the git of this machine. It promises that a repository runs nothing
 * here: none of its hooks, filters or configuration, and no submodules. It connects only to the address that was
 * checked, follows no redirect, and gives a credential only to the origin it is for.
 *
 * Each repository has a mirror, a cache of this process: the newest commits and their folders, without the content of
 * files, which git fetches when a reader needs it.
 */
export type Git = {
  /** The branches of the repository and the commit each is at, by name. */
  branches(remote: GitRemote): Promise<GitAnswer<readonly Branch[]>>;
  /**
   * A file at a commit of a branch; without `sha`, at its newest. `text` is null when the commit has no such file.
   */
  readFile(
    remote: GitRemote,
    branch: string,
    path: string,
    sha?: string | null,
  ): Promise<GitAnswer<FileAtCommit>>;
  /** Git's hash of the selected files, without their content: the files of a build are the same exactly when it is. */
  treeOf(remote: GitRemote, selection: Selection): Promise<GitAnswer<Selected>>;
  /** Writes the selected files into an empty folder. After a failure, its content must not be used. */
  checkOut(remote: GitRemote, selection: Selection, folder: string): Promise<GitAnswer<Selected>>;
  /** Removes the mirror of a repository whose registration or credential changed. */
  forget(id: string): Promise<void>;
};

export type GitRemote = {
  /** Names the mirror: an id of the registry, so letters, digits and underscores. */
  readonly id: string;
  readonly cloneUrl: string;
  readonly credential: GitCredential | null;
  /** The caller that waits for the answer. Absent: Postern itself, for a deploy. */
  readonly asker?: string;
};

/** `origin` is that of the clone URL for which the credential was given. It is sent nowhere else. */
export type GitCredential = { readonly origin: string } & (
  | { readonly kind: 'token'; readonly user: string; readonly token: string }
  | { readonly kind: 'ssh_key'; readonly privateKey: string; readonly knownHosts: string }
);

export type Branch = { readonly name: string; readonly sha: string };

export type { GitAnswer, GitFailure } from './answers.ts';

const maxListBytes = 4 * 1024 * 1024;
/** Questions of one asker. A request waits with each, so its owner's rate limit bounds them. */
const maxWaiting = 1_000;
const sha = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

/** Call prepare() first; it removes what an earlier process left. */
export function gitIn(
  place: string,
  {
    isShared = false,
    outbound,
    searchPath,
    allowsFiles = false,
    caFile = null,
    maxFileBytes = 1024 * 1024,
    // A commit and its folders, without content, are far smaller.
    maxMirrorBytes = 256 * 1024 * 1024,
    maxResidentBytes,
    listMs = 20_000,
    fetchMs = 30_000,
    checkOutMs = 300_000,
    maxFiles = 50_000,
    maxCheckOutBytes = 1024 * 1024 * 1024,
  }: Pick<FolderOptions, 'isShared'> & {
    readonly outbound: Outbound;
    /** PATH of this process. */
    readonly searchPath: string;
    /** ENVIRONMENTS_ALLOW_FILE_REPOSITORIES: clone URLs may begin with file://. */
    readonly allowsFiles?: boolean;
    /** OUTBOUND_CA_FILE: certificate authorities in PEM, in place of those of the machine. */
    readonly caFile?: string | null;
    readonly maxFileBytes?: number;
    readonly maxMirrorBytes?: number;
    /** Memory of one run of git. */
    readonly maxResidentBytes?: number;
    readonly listMs?: number;
    readonly fetchMs?: number;
    readonly checkOutMs?: number;
    /** Limits of one check-out. `maxBytes` counts the content. */
    readonly maxFiles?: number;
    readonly maxCheckOutBytes?: number;
  },
): Git & { prepare(): Promise<void> } {
  const staging = stagingFolder(place, { isShared });
  const folder = staging.path;
  // One question to a repository at a time, so that two do not lock each other's references.
  const repositoriesInTurn = createFairQueue({ width: 4, perSender: 1, queue: maxWaiting });
  /** A queue for each repository, in which its askers take turns. Otherwise one asker could delay deploys and other people. */
  const askersInTurn = new Map<string, { readonly queue: FairQueue; users: number }>();

  async function inTurn<T>(
    { id, asker = '' }: Pick<GitRemote, 'id' | 'asker'>,
    work: () => Promise<T>,
  ): Promise<T> {
    const known = askersInTurn.get(id) ?? {
      queue: createFairQueue({ width: 1, perSender: 1, queue: maxWaiting }),
      users: 0,
    };
    askersInTurn.set(id, known);
    known.users += 1;
    try {
      return await known.queue(asker, () => repositoriesInTurn(id, work));
    } finally {
      known.users -= 1;
      if (known.users === 0) askersInTurn.delete(id);
    }
  }

  /** Calls `work` with what git needs to reach the remote; removes the files of a private key afterwards. */
  async function reach<T>(
    { cloneUrl, credential }: GitRemote,
    work: (access: Access) => Promise<GitAnswer<T>>,
  ): Promise<GitAnswer<T>> {
    const to = remoteAddress(cloneUrl);
    if (to === undefined || (to.protocol === 'file' && !allowsFiles)) return failed('unsupported_url');
    const helpers = await linkHelpers(join(folder, 'helpers'), searchPath);
    if (helpers.kind === 'failed') return helpers;
    const env = { GIT_EXEC_PATH: helpers.value, GIT_ALLOW_PROTOCOL: to.protocol };
    const access = { url: to.url, config: {}, env };
    if (to.protocol === 'file') return await work(access);
    const found = await outbound.addressOf(to.host);
    if (found.kind === 'unknown_host') return failed('host_not_found');
    if (found.kind === 'private') return failed('private_address');
    const mine = credential?.origin === to.origin ? credential : null;
    if (to.protocol === 'https') {
      const address = found.address.includes(':') ? `[${found.address}]` : found.address;
      return await work({
        ...access,
        config: {
          'http.curloptResolve': `${to.host}:${to.port}:${address}`,
          ...(caFile === null ? {} : { 'http.sslCAInfo': caFile }),
          ...(mine?.kind === 'token' ? { [`http.${to.origin}.extraHeader`]: basic(mine) } : {}),
        },
      });
    }
    if (mine?.kind !== 'ssh_key') return failed('credential_refused');
    const keys = join(folder, `ssh-${randomUUID()}`);
    await mkdir(keys, { mode: 0o700 });
    try {
      await writeFile(join(keys, 'key'), `${mine.privateKey.trim()}\n`, { mode: 0o600 });
      await writeFile(join(keys, 'known_hosts'), `${mine.knownHosts.trim()}\n`, { mode: 0o600 });
      const ssh = searchPath.split(delimiter).map((place) => join(place, 'ssh'));
      const installed = ssh.find((path) => existsSync(path));
      if (installed === undefined) return failed('not_installed');
      const program = join(keys, 'ssh');
      const settings = sshSettings(keys, { ...to, address: found.address });
      await writeFile(program, `#!${installed} -F\n${settings}`, { mode: 0o700 });
      return await work({ ...access, env: { ...access.env, GIT_SSH: program, GIT_SSH_VARIANT: 'ssh' } });
    } finally {
      await rm(keys, { recursive: true, force: true });
    }
  }

  /** A changed clone URL gets a separate mirror, so that nothing of the earlier server is offered to the next. */
  const mirrorOf = ({ id, cloneUrl }: GitRemote) =>
    join(folder, `${id}-${createHash('sha256').update(cloneUrl).digest('hex').slice(0, 16)}.git`);

  function inMirror<T>(
    remote: GitRemote,
    timeoutMs: number,
    work: (mirror: string, access: MirrorAccess) => Promise<GitAnswer<T>>,
  ): Promise<GitAnswer<T>> {
    return inTurn(remote, () =>
      reach(remote, async ({ url, config, env }) => {
        // One time limit for all runs: other repositories wait for this turn.
        const until = performance.now() + timeoutMs;
        const mirror = mirrorOf(remote);
        const run: MirrorAccess['run'] = (args, options) =>
          runGit(args, {
            ...options,
            config: { ...config, ...options.config },
            env: { ...env, ...options.env },
            searchPath,
            timeoutMs: Math.max(1, until - performance.now()),
            writesTo: { folder: options.writesTo, maxBytes: maxMirrorBytes },
            ...(maxResidentBytes === undefined ? {} : { maxResidentBytes }),
          });
        return await orRemove(mirror, () => work(mirror, { url, run }));
      }),
    );
  }

  async function selected(remote: GitRemote, selection: Selection, to: string | null) {
    // Another form could be an option, or name a commit in another way.
    if (!sha.test(selection.sha)) return failed('commit_not_in_branch');
    const limits = { maxFiles, maxBytes: maxCheckOutBytes };
    return await inMirror(remote, to === null ? fetchMs : checkOutMs, (mirror, access) =>
      select(mirror, selection, to, access, limits),
    );
  }

  return {
    prepare: staging.prepare,

    branches: (remote) =>
      inTurn(remote, () =>
        reach(remote, async ({ url, config, env }) => {
          const run = await runGit(['ls-remote', '--heads', '--refs', '--', url], {
            config,
            env,
            searchPath,
            timeoutMs: listMs,
            maxBytes: maxListBytes,
          });
          return run.kind === 'done' ? ok(branchesIn(run.output.toString())) : failedRun(run);
        }),
      ),

    async readFile(remote, branch, path, commit = null) {
      if (commit !== null && !sha.test(commit)) return failed('commit_not_in_branch');
      const from = { branch, sha: commit, path };
      return await inMirror(remote, fetchMs, (mirror, access) =>
        fileInMirror(mirror, from, access, maxFileBytes),
      );
    },
    treeOf: (remote, selection) => selected(remote, selection, null),
    checkOut: (remote, selection, folder) => selected(remote, selection, folder),

    // In its turn: a mirror that is removed under a running git makes that git fail.
    forget: (id) =>
      inTurn({ id }, async () => {
        const names = await readdir(folder).catch(() => []);
        for (const name of names.filter((one) => one.startsWith(`${id}-`)))
          await rm(join(folder, name), { recursive: true, force: true, maxRetries: 5 });
      }),
  };
}

type Access = { url: string; config: GitConfig; env: Record<string, string> };

/**
 * A folder with the only programs that git may start. A server can name addresses of packs that git would fetch with
 * git-http-fetch (`packfile-uris`, gitprotocol-v2(5)), past the checked address. A failure is not remembered.
 */
async function linkHelpers(folder: string, searchPath: string): Promise<GitAnswer<string>> {
  // The last link: the folder is complete.
  if (existsSync(join(folder, 'git-remote-https'))) return ok(folder);
  const run = await runGit(['--exec-path'], { searchPath, timeoutMs: 10_000, maxBytes: 4_096 });
  if (run.kind !== 'done') return failedRun(run);
  const installed = run.output.toString().trim();
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const name of ['git-remote-http', 'git-remote-https'])
    await symlink(join(installed, name), join(folder, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  return ok(folder);
}

function branchesIn(listing: string): Branch[] {
  return listing.split('\n').flatMap((line) => {
    const [commit = '', reference = ''] = line.split('\t');
    const name = reference.startsWith('refs/heads/') ? reference.slice('refs/heads/'.length) : '';
    return sha.test(commit) && name !== '' ? [{ name, sha: commit }] : [];
  });
}

function basic({ user, token }: { user: string; token: string }): string {
  return `Authorization: Basic ${Buffer.from(`${user}:${token}`).toString('base64')}`;
}

/**
 * ssh_config(5), in a file that is a program, too: its first line starts ssh with the file itself. git passes a command with
 * options to a shell, which the container image does not have.
 */
function sshSettings(keys: string, { host, port, address }: { host: string; port: number; address: string }) {
  const settings = {
    BatchMode: 'yes',
    ConnectTimeout: '15',
    GlobalKnownHostsFile: '/dev/null',
    // Connects to the checked address, and still compares the host key with the one stored for the name.
    HostKeyAlias: knownHostsName({ host, port }),
    HostName: address,
    IdentitiesOnly: 'yes',
    IdentityAgent: 'none',
    IdentityFile: join(keys, 'key'),
    StrictHostKeyChecking: 'yes',
    UserKnownHostsFile: join(keys, 'known_hosts'),
  };
  return Object.entries(settings)
    .map(([name, value]) => `${name} "${value}"\n`)
    .join('');
}
