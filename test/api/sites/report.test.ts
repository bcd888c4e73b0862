import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Harness, openHarness, type TestKey } from '../../harness.ts';
import { replace, send, start, upload } from './uploads.ts';

let h: Harness;
let key: TestKey;
beforeAll(async () => {
  h = await openHarness();
  key = await h.key(await h.person('Ada'), { scopes: ['sites:write'] });
});
afterAll(() => h.close());

const read = (id: string, number: number, as = key) =>
  h.call('GET', `/sites/${id}/versions/${number}`, { as });

test('the report of a version has its receipt, its changes and its broken links, as the gateway would answer them', async () => {
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

test('a site without a start page is published with a warning, in every answer and in the report', async () => {
  const files = { 'guide/a.html': 'a', 'b c.html': 'b', 'style.css': '' };
  const warning = {
    code: 'no_start_page',
    message:
      'The site has no index.html at its top level, so its address shows “Not found”. Add one, or add the line “/ /b%20c.html 302” to the file _redirects.',
    pages: ['b c.html', 'guide/a.html'],
  };
  const tried = await upload(h, key, files, { dryRun: 'true' });
  expect(tried.data.warnings).toEqual([warning]);
  const made = await upload(h, key, files, { visibility: 'public' });
  const { id, url } = made.data;
  expect(made.data.warnings).toEqual([warning]);
  expect((await h.open(url)).statusCode).toBe(404);
  expect((await read(id, 1)).data.report.warnings).toEqual([warning]);
  expect((await replace(h, key, id, files)).data.warnings).toEqual([warning]);

  // What the message says to do is what helps, sent as a digest upload.
  const rules = '/ /b%20c.html 302\n';
  const withRule = { ...files, _redirects: rules };
  const { data: begun } = await start(h, key, id, withRule);
  await send(h, key, `/sites/${id}/uploads/${begun.id}`, rules);
  const after = await h.call('POST', `/sites/${id}/uploads/${begun.id}/publish`, { as: key, body: {} });
  expect([after.status, after.data.warnings]).toEqual([200, []]);
  expect((await read(id, 3)).data.report.warnings).toEqual([]);
  const opened = await h.open(url);
  expect([opened.statusCode, opened.headers['location']]).toEqual([302, '/b%20c.html']);

  const { data: again } = await start(h, key, id, files);
  const published = await h.call('POST', `/sites/${id}/uploads/${again.id}/publish`, { as: key, body: {} });
  expect(published.data.warnings).toEqual([warning]);
  const empty = await h.call('POST', '/sites', { as: key, body: { name: 'empty' } });
  expect(empty.data.warnings).toEqual([]);
});

test('files that Postern omits are counted by rule, in the response, in the dry run and in the report', async () => {
  const files = {
    'index.html': 'x',
    '._index.html': 'a',
    'b/._c.css': 'a',
    '__MACOSX/._x': 'a',
    'b/.DS_Store': 'a',
  };
  const leftOut = [
    { rule: '._*', count: 2 },
    { rule: '__MACOSX', count: 1 },
    { rule: '.DS_Store', count: 1 },
  ];
  expect((await upload(h, key, files, { dryRun: 'true' })).data.leftOut).toEqual(leftOut);
  const made = await upload(h, key, files);
  expect([made.data.fileCount, made.data.leftOut]).toEqual([1, leftOut]);
  const { id } = made.data;
  expect((await read(id, 1)).data.report.leftOut).toEqual(leftOut);

  const { data: begun } = await start(h, key, id, files);
  expect(begun.leftOut).toEqual(leftOut);
  const published = await h.call('POST', `/sites/${id}/uploads/${begun.id}/publish`, { as: key, body: {} });
  expect(published.data.leftOut).toEqual(leftOut);
  expect((await read(id, 2)).data.report.leftOut).toEqual(leftOut);
  await replace(h, key, id, { 'index.html': 'y' });
  expect((await read(id, 3)).data.report.leftOut).toEqual([]);
});

test('a dry run finds the errors in pages that the report lists after the publication', async () => {
  const files = {
    'index.html': '<a href="/gone">a</a><a href="/about">b</a><img src="http://example.com/x.png">',
    'about.html': '<img src="/project/logo.png">',
  };
  const found = ['broken_links', 'absolute_paths', 'mixed_content'];
  const codes = ({ data }: { data: { warnings: { code: string }[] } }) =>
    data.warnings.map(({ code }) => code);
  const tried = await upload(h, key, files, { dryRun: 'true' });
  expect(codes(tried)).toEqual(found);
  expect(tried.data.warnings[0].message).toBe('Broken links: 1, such as /gone in index.html.');
  const made = await upload(h, key, files);
  expect(made.data.warnings).toEqual([]);
  const { report } = (await read(made.data.id, 1)).data;
  expect([report.brokenLinks, report.absolutePaths, report.mixedContent].map(({ length }) => length)).toEqual(
    [1, 1, 1],
  );
  const { data: begun } = await start(h, key, made.data.id, files);
  const path = `/sites/${made.data.id}/uploads/${begun.id}/publish`;
  expect(codes(await h.call('POST', path, { as: key, body: { dryRun: true } }))).toEqual(found);
});

test('a rule that applies only to public sites is named while the site is private', async () => {
  const files = { 'index.html': 'x', _headers: '/*\n  Access-Control-Allow-Origin: *\n' };
  const warning = {
    code: 'rule_not_applied',
    message: expect.stringContaining('only public sites send'),
    pages: [],
  };
  const made = await upload(h, key, files, { visibility: 'private' });
  expect(made.data.warnings).toEqual([warning]);
  const { id } = made.data;
  expect((await read(id, 1)).data.report.warnings).toEqual([warning]);
  const change = await h.call('PATCH', `/sites/${id}`, { as: key, body: { visibility: 'public' } });
  expect((await h.open(change.data.url)).headers['access-control-allow-origin']).toBe('*');
  expect((await read(id, 1)).data.report.warnings).toEqual([]);
});

test('at most 50 lines of rules are named, and the rest is counted', async () => {
  const _redirects = '/a https://elsewhere.example\n'.repeat(60);
  const { data } = await upload(h, key, { 'index.html': 'x', _redirects });
  expect(data.warnings).toHaveLength(51);
  expect(data.warnings.at(-1).message).toBe('10 more lines of _redirects and _headers are not applied.');
});

test('OW-06 neither another person’s version nor a missing one can be read', async () => {
  const made = await upload(h, key, { 'index.html': 'x' });
  const other = await h.key(await h.person('Bob'), { scopes: ['sites:write'] });
  expect((await read(made.data.id, 1, other)).error.code).toBe('site_not_found');
  expect((await read(made.data.id, 2)).error.code).toBe('not_found');
});
