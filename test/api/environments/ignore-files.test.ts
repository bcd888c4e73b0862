import { afterAll, beforeAll, expect, test } from 'vitest';
import { configurationFile, openShop, page, type Shop } from './shop.ts';

let shop: Shop;
beforeAll(async () => {
  shop = await openShop();
});
afterAll(() => shop.close());

const ignoring = (...patterns: string[]) =>
  configurationFile.replace(
    'version: 1',
    `version: 1\nenvironment: { ignoreFiles: ${JSON.stringify(patterns)} }`,
  );

/** An Environment of a branch with this file, and what a push of files to it leads to. */
async function deployed(branch: string, file: string) {
  shop.repository.commit({ 'postern.yaml': file, 'index.html': page('first') }, branch);
  const { data } = await shop.create({ branch });
  await shop.settle(data.id);
  return {
    async push(files: Record<string, string>) {
      const sha = shop.repository.commit(files, branch);
      await shop.h.app.jobs.runNow('environment-branches');
      return (await shop.settle(data.id)).sha === sha ? 'deployed' : 'ignored';
    },
    deploys: async () =>
      (await shop.call('GET', '/builds', { query: { environment: data.id } })).data.length as number,
  };
}

test('a push of ignored files only deploys nothing; the next push of another file deploys both', async () => {
  const { push, deploys } = await deployed('documented', ignoring('docs/**', '*.md'));
  expect(await push({ 'docs/deep/guide.txt': 'one' })).toBe('ignored');
  expect(await push({ 'README.md': 'two' })).toBe('ignored');
  expect(await deploys()).toBe(1);
  expect(await push({ 'sub/README.md': '* stays in a folder' })).toBe('deployed');
  expect(await push({ 'README.md': 'three', 'index.html': page('second') })).toBe('deployed');
  expect(await deploys()).toBe(3);
});

test('a change of postern.yaml always deploys, and its new content applies', async () => {
  const { push } = await deployed('configured', ignoring('*.yaml', '*.md'));
  expect(await push({ 'other.yaml': 'a: 1' })).toBe('ignored');
  expect(await push({ 'postern.yaml': configurationFile })).toBe('deployed');
  expect(await push({ 'README.md': 'now it counts' })).toBe('deployed');
});

test('a branch that lost the served commit is deployed', async () => {
  const { push } = await deployed('rewritten', ignoring('*.md'));
  shop.repository.git('commit', '--quiet', '--amend', '--message', 'rewritten');
  expect(await push({ 'README.md': 'on another commit' })).toBe('deployed');
});
