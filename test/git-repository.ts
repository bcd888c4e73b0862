import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A real repository in a temporary folder. `commit` writes files, or links with `{ to }`, and returns the new commit. */
export type TestRepository = {
  readonly folder: string;
  readonly url: string;
  commit(files: Readonly<Record<string, string | { to: string } | null>>, branch?: string): string;
  git(...args: string[]): string;
  remove(): void;
};

export function newRepository(): TestRepository {
  const folder = mkdtempSync(join(tmpdir(), 'postern-repository-'));
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', folder, ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'] ?? '',
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_CONFIG_GLOBAL: '/dev/null',
        GIT_AUTHOR_NAME: 'Ada',
        GIT_AUTHOR_EMAIL: 'ada@example.com',
        GIT_COMMITTER_NAME: 'Ada',
        GIT_COMMITTER_EMAIL: 'ada@example.com',
      },
    }).trim();
  git('init', '--quiet', '--initial-branch=main');
  git('config', 'uploadpack.allowFilter', 'true');
  return {
    folder,
    url: `file://${folder}`,
    git,
    commit(files, branch = 'main') {
      const isNew = git('branch', '--list', branch) === '';
      if (git('branch', '--show-current') !== branch)
        git('switch', '--quiet', ...(isNew ? ['-c'] : []), branch);
      for (const [path, content] of Object.entries(files)) {
        const at = join(folder, path);
        rmSync(at, { force: true, recursive: true });
        mkdirSync(dirname(at), { recursive: true });
        if (typeof content === 'string') writeFileSync(at, content);
        else if (content !== null) symlinkSync(content.to, at);
      }
      git('add', '--all');
      git('commit', '--quiet', '--allow-empty', '--message', 'A change');
      return git('rev-parse', 'HEAD');
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
