import { afterAll, beforeAll, expect, test } from 'vitest';
import { tarGzOf } from '../../archives/tar.ts';
import { zipOf } from '../../archives/zip.ts';
import { type Harness, openHarness, type Person } from '../../harness.ts';
import { siteTables } from './every-route.ts';
import { archiveOf, page, start, upload } from './uploads.ts';

/** What is no content, however it is wrapped: the whole upload is refused, each file named, and nothing is kept. */
let h: Harness;
let ada: Person;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000 });
  ada = await h.person('Ada');
});
afterAll(() => h.close());

const index = { name: 'index.html', content: page('good') };

/** The result of one upload: its code, the files it names, and whether any site changed. */
async function outcomeOf(raw: { type: string; bytes: Buffer }): Promise<unknown> {
  const before = await siteTables(h);
  const { error } = await h.call('POST', '/sites', { as: ada, raw });
  const named = error?.details.files.map((file: { path: string }) => file.path);
  const after = await siteTables(h);
  return { code: error?.code, named, changed: JSON.stringify(after) !== JSON.stringify(before) };
}

const refusedFor = (path: string) => ({ code: 'upload_rejected', named: [path], changed: false });
const zip = (...parts: Parameters<typeof zipOf>[0]) => ({ type: 'application/zip', bytes: zipOf(parts) });
const tar = (...parts: Parameters<typeof tarGzOf>[0]) => ({
  type: 'application/gzip',
  bytes: tarGzOf(parts),
});

test.each([
  ['a symbolic link', 0o120777, '2'],
  ['a device', 0o020666, '3'],
  ['a block device', 0o060666, '4'],
  ['a pipe', 0o010644, '6'],
  ['a file that runs with its owner’s rights', 0o104755, '0'],
] as const)('UP-02 %s in a ZIP or a tar refuses the upload', async (_what, mode, type) => {
  const name = 'special.txt';
  const inZip = await outcomeOf(zip(index, { name, content: '/etc/passwd', mode }));
  expect(inZip).toEqual(refusedFor(name));
  const link = type === '0' ? {} : { link: '/etc/passwd' };
  const inTar = await outcomeOf(tar(index, { name, type, mode: mode & 0o7777, ...link }));
  expect(inTar).toEqual(refusedFor(name));
});

test('UP-02 a hard link in a tar refuses the upload', async () => {
  const entry = { name: 'special.txt', type: '1', link: 'index.html' };
  expect(await outcomeOf(tar(index, entry))).toEqual(refusedFor('special.txt'));
});

test.each([
  '.git/config',
  'docs/.git/HEAD',
  '.env',
  'app/.env.production',
  '.ENV',
  '.npmrc',
  '.htpasswd',
  'keys/id_rsa',
  '.ssh/known_hosts',
  '.aws/credentials',
])(
  'UP-06 %s is not published by mistake, by archive or digest, and its content is in no log',
  async (path) => {
    const content = `PASSWORD=canary-of-${path}`;
    const inZip = await outcomeOf(archiveOf({ 'index.html': page('good'), [path]: content }));
    expect(inZip).toEqual(refusedFor(path));
    const { id } = (await upload(h, ada, { 'index.html': page('good') })).data;
    const begun = await start(h, ada, id, { [path]: content });
    expect([begun.status, begun.error.code]).toEqual([422, 'upload_rejected']);
    expect(h.logged.join('')).not.toContain('canary-of-');
  },
);
