import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Harness, openHarness, type TestKey } from '../../harness.ts';
import { replace, upload } from './uploads.ts';

let h: Harness;
let key: TestKey;
beforeAll(async () => {
  h = await openHarness();
  key = await h.key(await h.person('Ada'), { scopes: ['sites:write'] });
});
afterAll(() => h.close());

const read = (id: string, number: number, as = key) =>
  h.call('GET', `/sites/${id}/versions/${number}`, { as });

test('a version tells its receipt, what it changed and which links lead nowhere, as the gateway would answer them', async () => {
  const made = await upload(h, key, {
    'index.html': '<a href="/about">a</a><a href="/moved">b</a><a href="/gone">c</a>',
    'about.html': '<img src="http://example.com/x.png"><img src="/project/logo.png">',
    _redirects: '/moved /about 301\n',
  });
  const { id } = made.data;
  const first = await read(id, 1);
  expect(first.data).toMatchObject({
    number: 1,
    isLive: true,
    receipt: made.data.version.digest,
    report: {
      against: null,
      added: { count: 3 },
      brokenLinks: [{ page: 'index.html', target: '/gone' }],
      absolutePaths: [{ page: 'about.html', target: '/project/logo.png' }],
      mixedContent: [{ page: 'about.html', target: 'http://example.com/x.png' }],
      isComplete: true,
    },
  });
  await replace(h, key, id, { 'index.html': '<p>less</p>' });
  expect((await read(id, 2)).data.report).toMatchObject({
    against: 1,
    changed: { count: 1, names: ['index.html'] },
    removed: { count: 2, names: ['_redirects', 'about.html'] },
    brokenLinks: [],
  });
  expect((await read(id, 1)).data).toMatchObject({ isLive: false, report: first.data.report });
});

test('where every address shows the start page, no link to a page is broken', async () => {
  const made = await upload(
    h,
    key,
    { 'index.html': '<a href="/any">a</a><img src="gone.png">' },
    { spa: 'true' },
  );
  const { data } = await read(made.data.id, 1);
  expect(data.report.brokenLinks).toEqual([{ page: 'index.html', target: 'gone.png' }]);
});

test('OW-06 a version of somebody else is not read, nor one that is not there', async () => {
  const made = await upload(h, key, { 'index.html': 'x' });
  const other = await h.key(await h.person('Bob'), { scopes: ['sites:write'] });
  expect((await read(made.data.id, 1, other)).error.code).toBe('site_not_found');
  expect((await read(made.data.id, 2)).error.code).toBe('not_found');
});
