import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { tarGzOf } from '../../../test/archives/tar.ts';
import { zipOf } from '../../../test/archives/zip.ts';
import { keyFormat } from '../keys/key-value.ts';
import { checkUpload, defaultSitesConfig, uploadKindOf } from './sites.ts';

const folder = mkdtempSync(join(tmpdir(), 'postern-check-'));
afterAll(() => rmSync(folder, { recursive: true }));

const site = [
  { name: 'index.html', content: '<h1>Hello</h1>' },
  { name: 'a/z.css', content: 'body {}' },
  { name: 'a-b/ü.txt', content: 'é' },
  { name: 'Zebra.txt', content: '' },
];

async function check(name: string, bytes: Buffer | string) {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  const kind = uploadKindOf(name);
  if (kind === undefined) throw new Error(`${name} is of no kind.`);
  return await checkUpload({ path, kind }, defaultSitesConfig.upload, keyFormat('app'));
}

test('the same files have the same receipt, however they were packed', async () => {
  const zip = await check('site.zip', zipOf(site));
  const tar = await check('site.tar.gz', tarGzOf([...site].reverse()));
  expect(zip).toEqual(tar);
  expect(zip).toMatchObject({
    problems: [],
    files: 4,
    bytes: 23,
    receipt: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  const changed = await check(
    'site.zip',
    zipOf([...site.slice(1), { name: 'index.html', content: '<h1>Hallo</h1>' }]),
  );
  expect(changed.receipt).not.toBe(zip.receipt);
});

test('one page is a site', async () => {
  expect(await check('page.html', '<h1>Hello</h1>')).toMatchObject({ problems: [], files: 1, bytes: 14 });
});

test('a site whose address would show nothing is fine, with a warning', async () => {
  const found = await check('site.zip', zipOf([{ name: 'page.html', content: 'x' }]));
  expect(found).toMatchObject({
    problems: [],
    warnings: [{ code: 'no_start_page', pages: ['page.html'] }],
  });
  const led = [
    { name: 'page.html', content: 'x' },
    { name: '_redirects', content: '/ /page.html 302' },
  ];
  for (const files of [site, led]) expect((await check('site.zip', zipOf(files))).warnings).toEqual([]);
});

test('with problems there is no receipt', async () => {
  const report = await check('bad.zip', zipOf([...site, { name: '../x.html', content: 'x' }]));
  expect(report).toMatchObject({ receipt: null, problems: [{ path: '../x.html', code: 'bad_path' }] });
});

test('what is no archive is a problem and not a failure', async () => {
  for (const name of ['broken.zip', 'broken.tar.gz']) {
    const { problems } = await check(name, 'not an archive at all');
    expect(problems).toMatchObject([{ path: '', code: 'bad_archive' }]);
  }
});

test.runIf(process.platform === 'linux')('the receipt is what sha256sum makes of the folder', async () => {
  const root = join(folder, 'site');
  for (const { name, content } of site) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
  }
  const command = "find . -type f -printf '%P\\n' | LC_ALL=C sort | xargs -d '\\n' sha256sum | sha256sum";
  const [digest] = execFileSync('bash', ['-c', command], { cwd: root, encoding: 'utf8' }).split(' ');
  expect((await check('site.zip', zipOf(site))).receipt).toBe(digest);
});
