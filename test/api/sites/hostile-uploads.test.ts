import { readdir } from 'node:fs/promises';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tarBlocks, tarEnd, tarGzOf, type TarPart } from '../../archives/tar.ts';
import { zipOf, type ZipPart } from '../../archives/zip.ts';
import { type Answer, type Harness, openHarness, type TestKey } from '../../harness.ts';
import { page, replace, upload } from './uploads.ts';

let h: Harness;
let key: TestKey;
let site: { id: string; version: object };
beforeAll(async () => {
  h = await openHarness();
  key = await h.key(await h.person('Ada'), { scopes: ['sites:write'] });
  site = (await upload(h, key, { 'index.html': page('live') })).data;
});
afterAll(() => h.close());

const put = (type: string, bytes: Buffer): Promise<Answer> =>
  h.call('PUT', `/sites/${site.id}/content`, { as: key, raw: { type, bytes } });
const putZip = (parts: readonly ZipPart[], shape = {}) => put('application/zip', zipOf(parts, shape));
const putTar = (parts: readonly TarPart[]) => put('application/gzip', tarGzOf(parts));

async function stored(): Promise<number> {
  let count = 0;
  for await (const _blob of h.blobs.list()) count += 1;
  return count;
}

/** The result of an upload, and the stored state afterwards. */
async function outcomeOf({ status, error }: Answer) {
  const { data } = await h.call('GET', `/sites/${site.id}`, { as: key });
  return {
    status,
    code: error?.code,
    problems: error?.details.files.map((file: { code: string }) => file.code),
    live: data.version,
    stored: await stored(),
    incoming: await readdir(h.incoming),
  };
}

/** Refused for this among others, the live version untouched, nothing of it kept. */
function refusedFor(problem: string) {
  return {
    status: 422,
    code: 'upload_rejected',
    problems: expect.arrayContaining([problem]),
    live: site.version,
    stored: 1,
    incoming: [],
  };
}

const good = { name: 'index.html', content: page('evil') };

describe('T38 UP-01 names that lead out of the site are refused', () => {
  test.each([
    '../x.html',
    'a/../../x.html',
    '/etc/x.html',
    'C:/x.html',
    'a\\x.html',
    'a\u0000.html',
    '..%2fx.html',
    'a/./x.html',
    'a//x.html',
    '\u2024\u2024/x.html',
    `${'d/'.repeat(300)}x.html`,
    `${'n'.repeat(300)}.html`,
  ])('%j', async (name) => {
    expect(await outcomeOf(await putZip([good, { name, content: 'x' }]))).toEqual(refusedFor('bad_path'));
  });

  test('a name in overlong UTF-8', async () => {
    const name = Buffer.from([0xc0, 0xae, 0xc0, 0xae, 0x2f, 0x78]);
    expect(await outcomeOf(await putZip([good, { name, content: 'x' }]))).toEqual(refusedFor('bad_path'));
  });
});

describe('T39 UP-02 entries that are not plain files', () => {
  test.each([
    ['symbolic link', 0o120_777],
    ['device', 0o020_666],
    ['FIFO', 0o010_644],
    ['set-user-ID', 0o104_755],
  ])('a %s in a ZIP', async (_what, mode) => {
    expect(await outcomeOf(await putZip([good, { name: 'x.html', content: 'y', mode }]))).toEqual(
      refusedFor('bad_entry'),
    );
  });

  test.each([
    ['hard link', '1'],
    ['symbolic link', '2'],
    ['device', '3'],
    ['FIFO', '6'],
  ])('a %s in a tar', async (_what, type) => {
    expect(await outcomeOf(await putTar([good, { name: 'x.html', type, link: 'index.html' }]))).toEqual(
      refusedFor('bad_entry'),
    );
  });
});

describe('T40 UP-03 archives that unpack to more than allowed', () => {
  test('a bomb is stopped at the limit of unpacked bytes', { tags: 'flood' }, async () => {
    const zeros = Buffer.alloc(45 * 1024 * 1024);
    const parts = Array.from({ length: 6 }, (_, at) => ({ name: `${at}.txt`, content: zeros }));
    expect(await outcomeOf(await putZip(parts))).toEqual(refusedFor('upload_too_large'));
  });

  test('entries that overlap, and a size that lies', async () => {
    const overlapping = zipOf([good, { name: 'b.html', content: 'x', offset: 0 }]);
    expect(await outcomeOf(await put('application/zip', overlapping))).toEqual(refusedFor('bad_archive'));
    expect(await outcomeOf(await putZip([{ ...good, size: 3 }]))).toEqual(refusedFor('bad_entry'));
  });

  test('more folders than files are allowed', async () => {
    const folders = Array.from({ length: 10_001 }, (_, at) => ({ name: `${at}/` }));
    expect(await outcomeOf(await putTar(folders))).toEqual(refusedFor('too_many_files'));
  });

  test('65,535 empty folders, in a ZIP, a Zip64 and a tar', { tags: 'flood' }, async () => {
    const folders = Array.from({ length: 65_535 }, (_, at) => ({ name: `${at}/` }));
    expect(await outcomeOf(await putZip(folders))).toEqual(refusedFor('bad_archive'));
    expect(await outcomeOf(await putZip(folders, { zip64: {} }))).toEqual(refusedFor('bad_archive'));
    expect(await outcomeOf(await putTar(folders))).toEqual(refusedFor('too_many_files'));
  });

  test('an archive in an archive is published as a file and is not unpacked', async () => {
    const inner = zipOf([{ name: '../../x.html', content: 'x' }]);
    const made = await upload(h, key, { 'index.html': page('outer'), 'inner.zip': inner });
    expect(made.data.fileCount).toBe(2);
    await h.call('DELETE', `/sites/${made.data.id}`, { as: key });
  });
});

test('T41 archives that different programs read differently are refused', async () => {
  const before = await stored();
  const shapes: Answer[] = [
    await putZip([{ ...good, local: { name: 'other.html' } }]),
    await putZip([{ ...good, crc: 1 }]),
    await putZip([good], { before: Buffer.from('junk') }),
    await putZip([good], { after: Buffer.from('junk') }),
    await put('application/gzip', gzipSync(Buffer.concat([tarBlocks([good]), tarEnd, tarBlocks([good])]))),
  ];
  expect(shapes.map(({ status, error }) => [status, error.code])).toEqual(
    shapes.map(() => [422, 'upload_rejected']),
  );
  expect(await stored()).toBe(before);
});

test('T42 a duplicate name is refused, even in two forms of Unicode or as a file and a folder', async () => {
  for (const [one, other] of [
    ['a.html', 'a.html'],
    ['\u00e9.html', 'e\u0301.html'],
    ['a', 'a/b.html'],
  ] as const) {
    const { error } = await putZip([
      { name: one, content: 'x' },
      { name: other, content: 'y' },
    ]);
    expect(error.details.files[0].code).toBe('name_collision');
  }
});

test('T42 names that differ only in case are published, each as its own file, with a warning', async () => {
  const made = await upload(
    h,
    key,
    { 'index.html': page('x'), 'struct.Foo.html': page('upper'), 'struct.foo.html': page('lower') },
    { visibility: 'public' },
  );
  expect(made.data.warnings).toEqual([
    {
      code: 'similar_names',
      message: expect.stringMatching(/^struct\.Foo\.html and struct\.foo\.html differ/),
      pages: [],
    },
  ]);
  for (const [name, text] of [
    ['struct.Foo', 'upper'],
    ['struct.foo', 'lower'],
  ] as const)
    expect((await h.open(made.data.url + name)).body).toBe(page(text));
});

test('a name that is not UTF-8 is refused with that reason and the fix', async () => {
  // "Über uns.html" as Windows Explorer writes it, in code page 437.
  const name = Buffer.from([0x9a, ...Buffer.from('ber uns.html')]);
  const { error } = await putZip([{ name, content: 'x' }]);
  expect(error.details.files).toEqual([
    {
      path: '\ufffdber uns.html',
      code: 'bad_path',
      problem: expect.stringMatching(/not UTF-8; rename it, or pack the folder/),
    },
  ]);
});

test('names from site generators are published, and served at their address', async () => {
  const files = {
    'tags/etc./index.html': page('etc'),
    'می\u200cخواهم.html': page('persian'),
    '👩\u200d💻.html': page('emoji'),
    '.well-known/matrix/server': '{}',
    '.env.example': 'KEY=',
  };
  const made = await upload(h, key, { ...files, 'index.html': page('x') }, { visibility: 'public' });
  expect(made.status).toBe(201);
  for (const [name, text] of Object.entries(files)) {
    const path = name.replace('index.html', '').split('/').map(encodeURIComponent).join('/');
    const answer = await h.open(made.data.url + path);
    expect([name, answer.statusCode, answer.body]).toEqual([name, 200, text]);
  }
  const leaky = await upload(h, key, { 'index.html': 'x', '.env.example': `KEY=${key.value}` });
  expect(leaky.error.code).toBe('credential_in_content');
});

test('T43 UP-06 names of the service, names of secrets and invisible names are refused', async () => {
  const names = ['.postern/x.html', '.git/config', '.env', 'a\u202eb.html', 'a\u200bb.html', 'x. '];
  const { error } = await putZip(names.map((name) => ({ name, content: 'x' })));
  expect(error.details.files.map((file: { code: string }) => file.code)).toEqual([
    'reserved_path',
    'private_file',
    'private_file',
    'bad_path',
    'bad_path',
    'bad_path',
  ]);
});

test('UP-05 after two replacements at once, both versions are whole and one is live', async () => {
  const versions = await Promise.all(
    ['left', 'right'].map((side) => replace(h, key, site.id, { 'index.html': page(side), 'side.txt': side })),
  );
  expect(versions.map(({ status }) => status)).toEqual([200, 200]);
  expect(new Set(versions.map(({ data }) => data.version.number))).toEqual(new Set([2, 3]));
  const text = async (path: string) =>
    (await h.call('GET', `/sites/${site.id}/files/${path}`, { as: key })).text;
  expect(await text('index.html')).toBe(page(await text('side.txt')));
});

test('T51 fifty slow uploads need little memory and delay no other request', {
  tags: 'flood',
}, async () => {
  await h.app.web.listen({ host: '127.0.0.1', port: 0 });
  const { port } = h.app.web.server.address() as AddressInfo;
  const body = zipOf([{ ...good, content: Buffer.alloc(8_000_000, 'x'), stored: true }]);
  const piece = body.subarray(0, 4_000_000);
  const before = process.memoryUsage().rss;
  const slow = Array.from({ length: 50 }, () => {
    const sent = request({
      port,
      method: 'PUT',
      path: `/api/v2/sites/${site.id}/content`,
      headers: {
        host: 'localhost:3000',
        authorization: `Bearer ${key.value}`,
        'content-type': 'application/zip',
        'content-length': body.length,
      },
    });
    sent.on('error', () => undefined);
    sent.write(piece);
    return sent;
  });
  const folder = join(dirname(dirname(h.incoming)), 'uploads-0');
  const inFiles = async () => (await readdir(folder)).length;
  await expect.poll(inFiles).toBe(50);
  const quick = await replace(h, key, site.id, { 'index.html': page('meanwhile') });
  expect(quick.status).toBe(200);
  // 200 MB were sent; held in memory they would all show.
  expect(process.memoryUsage().rss - before).toBeLessThan(160_000_000);
  for (const sent of slow) sent.destroy();
  await expect.poll(inFiles).toBe(0);
  const live = await h.call('GET', `/sites/${site.id}`, { as: key });
  expect(live.data.version).toEqual(quick.data.version);
});
