import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Call } from '../http/call.ts';
import { Failure, wrongUsage } from '../core/failure.ts';
import type { Io } from '../core/io.ts';

/** The repository of the working folder, as its git remote `origin` names it. */
const nameIt = 'Name it: --repository OWNER/NAME';

type Repository = { readonly fullName: string; readonly cloneUrl: string };

/** Its full name at the server. @throws Failure of the code 2 or 3 */
export async function repositoryHere(call: Call): Promise<string> {
  // Reading a setting starts no program that the folder names, such as a hook.
  const remote = await git('config', '--get', 'remote.origin.url');
  if (remote === undefined) throw wrongUsage('This folder has no git remote origin.', nameIt);
  const place = placeOf(remote);
  const fullName = place.split('/').slice(-2).join('/');
  if (/^[\w.-]+\/[\w.-]+$/.test(fullName)) {
    const named = await call<Repository>('GET', `/repositories/${fullName}`).catch((error: unknown) => {
      if (error instanceof Failure && (error.exitCode === 3 || error.exitCode === 2)) return undefined;
      throw error;
    });
    if (named !== undefined && placeOf(named.cloneUrl) === place) return named.fullName;
  }
  for (let page = 1; ; page += 1) {
    const found = await call<Repository[]>('GET', `/repositories?limit=100&page=${page}`);
    const one = found.find(({ cloneUrl }) => placeOf(cloneUrl) === place);
    if (one !== undefined) return one.fullName;
    if (found.length < 100)
      throw new Failure('repo_not_onboarded', 3, `No repository that you can see has the address ${place}.`, {
        hint: `${nameIt}, as postern repos list prints it, or register it: postern repos create`,
      });
  }
}

/** @throws Failure of the code 2 */
export async function branchHere(env: Io['env']): Promise<string> {
  const branch = (await git('symbolic-ref', '--short', '--quiet', 'HEAD')) ?? branchOfPipeline(env);
  if (branch === undefined)
    throw wrongUsage('This folder is on no git branch.', 'Name it: postern env up BRANCH');
  return branch;
}

/**
 * Pipelines check out a commit, and name its branch in variables. A pull request of a fork names a branch of the fork: with
 * `pull_request_target` its pipeline has secrets, so nothing is taken from it.
 */
export function branchOfPipeline(env: Io['env']): string | undefined {
  if (env['GITHUB_EVENT_NAME'] === 'pull_request_target') return undefined;
  const isTag = env['GITHUB_REF_TYPE'] === 'tag' || Boolean(env['CI_COMMIT_TAG']);
  // In the pipeline of a pull request, GITHUB_REF_NAME names its merge and not its branch.
  const { GITHUB_HEAD_REF: head, GITHUB_REF_NAME: ofGithub, CI_COMMIT_REF_NAME: ofGitlab } = env;
  return head || (isTag ? undefined : ofGithub || ofGitlab) || undefined;
}

async function git(...args: string[]): Promise<string | undefined> {
  const found = await promisify(execFile)('git', args).catch(() => undefined);
  return found?.stdout.trim() || undefined;
}

/** `git.example.com/acme/website`: the same for every way to write and reach the address. */
export function placeOf(remote: string): string {
  const [, host, path] = /^(?:[^@/:]+@)?([^/:]{2,}):(?!\/\/)(.*)$/.exec(remote) ?? [];
  const url = host === undefined ? URL.parse(remote) : null;
  const place = url === null ? `${host ?? ''}/${path ?? remote}` : `${url.hostname}/${url.pathname}`;
  const [first = '', ...rest] = place
    .replace(/\/+$/, '')
    .replace(/\.git$/, '')
    .split('/');
  return [first.toLowerCase(), ...rest.filter((part) => part !== '')].join('/');
}
