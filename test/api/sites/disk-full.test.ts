import fs from 'node:fs';
import promises, { readdir, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { hour } from '../../../src/core/clock.ts';
import { tarGzOf } from '../../archives/tar.ts';
import { type Answer, type Harness, openHarness, type Person } from '../../harness.ts';
import { replaceBuiltin } from '../../replace-builtin.ts';
import { type Files, page, replace, send, sha256, start, upload } from './uploads.ts';

/** What the disk has no room for: each call that fails on a full one. Everything else goes to the real disk. */
const steps = ['open', 'writev', 'appendFile', 'sync', 'rename', 'mkdir'] as const;
const disk = {
  fullAt: undefined as string | undefined,
  code: 'ENOSPC',
  /** Calls that still find room. */
  room: 0,
  refuse(step: string): boolean {
    if (disk.fullAt !== step) return false;
    disk.room -= 1;
    return disk.room < 0;
  },
  error: () => Object.assign(new Error(`${disk.code}: no space left on device`), { code: disk.code }),
};

const unlessFull =
  <A extends unknown[], R>(step: string, call: (...args: A) => Promise<R>) =>
  async (...args: A): Promise<R> => {
    if (disk.refuse(step)) throw disk.error();
    return await call(...args);
  };
const { open } = promises;
replaceBuiltin(promises, {
  rename: unlessFull('rename', promises.rename),
  mkdir: unlessFull('mkdir', promises.mkdir) as typeof promises.mkdir,
  async open(...args: Parameters<typeof open>) {
    if (args[1] === 'wx' && disk.refuse('open')) throw disk.error();
    const file = await open(...args);
    const { writev, appendFile, sync } = file;
    // A disk with room for a little takes that much of what is written, and nothing of what comes after.
    file.writev = (async (pieces: NodeJS.ArrayBufferView[]) => {
      if (disk.refuse('writev')) throw disk.error();
      if (disk.fullAt !== 'appendFile') return await writev.call(file, pieces);
      await file.write(pieces[0] as NodeJS.ArrayBufferView, 0, 1);
      return { bytesWritten: 1, buffers: pieces };
    }) as typeof writev;
    file.appendFile = unlessFull('appendFile', (...rest) => appendFile.apply(file, rest));
    file.sync = unlessFull('sync', () => sync.call(file));
    return file;
  },
});

const { createWriteStream } = fs;
replaceBuiltin(fs, {
  createWriteStream: ((...args: Parameters<typeof createWriteStream>) =>
    disk.refuse('temporary file')
      ? new Writable({ write: (_chunk, _encoding, done) => done(disk.error()) })
      : createWriteStream(...args)) as typeof createWriteStream,
});

let h: Harness;
let ada: Person;
let site: { id: string; version: object; url: string };
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000 });
  ada = await h.person('Ada');
  site = (await upload(h, ada, { 'index.html': page('live') }, { visibility: 'public' })).data;
});
afterAll(() => h.close());
beforeEach(() => {
  disk.fullAt = undefined;
  disk.code = 'ENOSPC';
});

let nth = 0;
const shelves = new Set([sha256(page('live')).slice(0, 2)]);

/** Contents that were never there before, the page of a first two digits that none had: its folder has to be made. */
function fresh(): Files {
  let content: string;
  do content = page(`new ${(nth += 1)}`);
  while (shelves.has(sha256(content).slice(0, 2)));
  const files = { 'index.html': content, 'a.txt': `a ${nth}`, 'b.txt': `b ${nth}` };
  for (const one of Object.values(files)) shelves.add(sha256(one).slice(0, 2));
  return files;
}

async function whileFullAt(step: string, room: number, work: () => Promise<Answer>): Promise<Answer> {
  disk.fullAt = step;
  disk.room = room;
  const answer = await work();
  disk.fullAt = undefined;
  return answer;
}

/** Nothing of what failed is left in staging, the live version is as it was, and the next upload is taken. */
async function expectWhole(): Promise<void> {
  expect(await readdir(h.incoming)).toEqual([]);
  expect(await readdir(join(dirname(dirname(h.incoming)), 'uploads-0'))).toEqual([]);
  const { data } = await h.call('GET', `/sites/${site.id}`, { as: ada });
  expect(data.version).toEqual(site.version);
  expect((await h.open(site.url)).payload).toBe(page('live'));
  const next = await upload(h, ada, fresh());
  expect(next.status).toBe(201);
  await h.call('DELETE', `/sites/${next.data.id}`, { as: ada });
}

const isFull = { status: 507, error: { code: 'storage_full', hint: expect.stringContaining('free space') } };
const takers: Record<string, (files: Files) => Promise<Answer>> = {
  'a ZIP that replaces': (files) => replace(h, ada, site.id, files),
  'a tar.gz that makes a site': (files) =>
    h.call('POST', '/sites', {
      as: ada,
      raw: {
        type: 'application/gzip',
        bytes: tarGzOf(Object.entries(files).map(([name, content]) => ({ name, content: String(content) }))),
      },
    }),
  'a page alone': (files) =>
    h.call('PUT', `/sites/${site.id}/content`, {
      as: ada,
      raw: { type: 'text/html', bytes: String(files['index.html']) },
    }),
  'a content of a digest upload': async (files) => {
    const { data } = await start(h, ada, site.id, files);
    return await send(h, ada, `/sites/${site.id}/uploads/${data.id}`, String(files['index.html']));
  },
};

for (const step of steps) {
  for (const [what, take] of Object.entries(takers)) {
    test(`UP-08 ${what}, on a disk that is full at ${step}, is answered 507, and everything stays as it was`, async () => {
      expect(await whileFullAt(step, 0, () => take(fresh()))).toMatchObject(isFull);
      await expectWhole();
    });
  }
}

test('UP-08 a ZIP that does not fit on the disk is answered 507, and everything stays as it was', async () => {
  expect(await whileFullAt('temporary file', 0, () => replace(h, ada, site.id, fresh()))).toMatchObject(
    isFull,
  );
  await expectWhole();
});

test('UP-08 a quota of the disk is answered like a full disk', async () => {
  disk.code = 'EDQUOT';
  for (const step of ['temporary file', 'writev'])
    expect(await whileFullAt(step, 0, () => replace(h, ada, site.id, fresh()))).toMatchObject(isFull);
  await expectWhole();
});

test('UP-08 the part of an upload that a full disk kept is removed', async () => {
  await sweep();
  const before = await stored();
  expect(await whileFullAt('rename', 1, () => replace(h, ada, site.id, fresh()))).toMatchObject(isFull);
  expect((await stored()).length).toBe(before.length + 1);
  await sweep();
  expect(await stored()).toEqual(before);
  await expectWhole();
});

/** The clean-up, with every content old enough to belong to no upload under way. */
async function sweep(): Promise<void> {
  const at = new Date(h.clock.now() - 2 * hour);
  for (const digest of await stored())
    await utimes(join(dirname(h.incoming), digest.slice(0, 2), digest.slice(2)), at, at);
  await h.app.services.sitesServices.siteCleanup.run();
}

async function stored(): Promise<string[]> {
  const found: string[] = [];
  for await (const { digest } of h.blobs.list()) found.push(digest);
  return found.sort();
}
