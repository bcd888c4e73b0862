import { expect, test } from 'vitest';
import { branchOfPipeline, placeOf } from './git-remote.ts';

test.each([
  'https://git.example.com/acme/website.git',
  'https://ada@Git.example.com/acme/website/',
  'ssh://git@git.example.com:2222/acme/website.git',
  'git@git.example.com:acme/website.git',
  'git.example.com:acme/website',
])('%s is the same repository', (remote) => {
  expect(placeOf(remote)).toBe('git.example.com/acme/website');
});

test('a folder of this machine is the same with and without file://', () => {
  expect(placeOf('file:///srv/git/website.git')).toBe(placeOf('/srv/git/website'));
});

test('another host or path is another repository', () => {
  expect(placeOf('https://other.example.com/acme/website')).not.toBe(
    placeOf('https://git.example.com/acme/website'),
  );
  expect(placeOf('https://git.example.com/acme/Website')).not.toBe(
    placeOf('https://git.example.com/acme/website'),
  );
});

test('a pipeline names its branch: of a pull request the head, of a tag none', () => {
  expect(branchOfPipeline({ GITHUB_HEAD_REF: 'search', GITHUB_REF_NAME: '12/merge' })).toBe('search');
  expect(branchOfPipeline({ GITHUB_HEAD_REF: '', GITHUB_REF_NAME: 'main', GITHUB_REF_TYPE: 'branch' })).toBe(
    'main',
  );
  expect(branchOfPipeline({ CI_COMMIT_REF_NAME: 'feature/a' })).toBe('feature/a');
  const ofFork = {
    GITHUB_EVENT_NAME: 'pull_request_target',
    GITHUB_HEAD_REF: 'main',
    GITHUB_REF_NAME: 'main',
  };
  expect(branchOfPipeline(ofFork)).toBeUndefined();
  expect(branchOfPipeline({ GITHUB_REF_NAME: 'v1', GITHUB_REF_TYPE: 'tag' })).toBeUndefined();
  expect(branchOfPipeline({ CI_COMMIT_REF_NAME: 'v1', CI_COMMIT_TAG: 'v1' })).toBeUndefined();
});
