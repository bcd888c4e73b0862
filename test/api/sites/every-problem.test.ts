import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { keyFormat } from '../../../src/features/keys/key-value.ts';
import { checkUpload, defaultSitesConfig, type SitesConfig } from '../../../src/features/sites/sites.ts';
import { zipOf } from '../../archives/zip.ts';
import { type Harness, openHarness, type Person } from '../../harness.ts';
import { archiveOf, upload } from './uploads.ts';

/** One response names all that is wrong, in an archive and in a digest upload, by the limits at the publish. */
let h: Harness;
let ada: Person;
beforeAll(async () => {
  h = await openHarness();
  ada = await h.person('Ada');
});
afterAll(() => h.close());

const files = {
  'index.html': 'x',
  '.env': 'A=1',
  'a\\b.html': 'x',
};
const wrong = [
  ['.env', 'private_file'],
  ['a\\b.html', 'bad_path'],
];
type Problem = { readonly path: string; readonly code: string };
const listed = (problems: readonly Problem[]) => problems.map(({ path, code }) => [path, code]);

test('the response to an archive names every invalid file, even if it was packed as one folder', async () => {
  for (const folder of ['', 'site/']) {
    const packed = Object.fromEntries(Object.entries(files).map(([path, text]) => [folder + path, text]));
    const answer = await upload(h, ada, packed);
    const found: Problem[] = answer.error.details.files;
    expect(listed(found.map((one) => ({ ...one, path: one.path.replace(folder, '') })))).toEqual(wrong);
  }
});

test('the check without a server reports the same', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-check-'));
  const path = join(folder, 'site.zip');
  writeFileSync(path, archiveOf(files).bytes);
  const report = await checkUpload({ path, kind: 'zip' }, defaultSitesConfig.upload, keyFormat('app'));
  expect([listed(report.problems), report.receipt]).toEqual([wrong, null]);
  rmSync(folder, { recursive: true });
});

const refusedFor = (code: string) => ({ details: { files: [expect.objectContaining({ code })] } });

test.each<[string, Partial<SitesConfig['upload']>, object]>([
  ['a kind of file', { allowedExtensions: ['html'] }, refusedFor('extension_not_allowed')],
  ['the number of files and folders', { maxFiles: 3 }, refusedFor('too_many_files')],
  ['the bytes that may be sent', { maxUploadBytes: 10 }, { code: 'upload_too_large' }],
])(
  'UP-04 %s that was disallowed while an archive arrived is not published',
  async (_what, limits, expected) => {
    const { sites, sitesConfig } = h.app.services.sitesServices;
    const caller = {
      kind: 'session',
      user: ada.user,
      sessionId: ada.sessionId,
      expiresAt: 0,
      authenticatedAt: null,
    } as const;
    const bytes = zipOf([
      { name: 'index.html', content: 'x' },
      { name: 'a.pdf', content: 'x' },
      { name: 'one/', mode: 0o040755 },
      { name: 'two/', mode: 0o040755 },
    ]);
    const received = await sites.receive(caller, systemAuditContext, {
      kind: 'zip',
      stream: Readable.from([bytes]),
      fileName: 'site.zip',
      left: AbortSignal.any([]),
    });
    const before = await sitesConfig.read();
    const changed = { ...before.value.upload, ...limits };
    const { etag } = await sitesConfig.put(systemAuditContext, before.etag, {
      ...before.value,
      upload: changed,
    });
    const refused = await sites
      .create(caller, systemAuditContext, {}, received)
      .catch((error: unknown) => error);
    expect(refused).toMatchObject(expected);
    await sitesConfig.put(systemAuditContext, etag, before.value);
  },
);
