// @module-tag sql
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { createGzip, gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { fallibleDatabase } from '../../../../test/api/limits/outages.ts';
import { openTestDatabase } from '../../../../test/database.ts';
import { environmentRow } from '../../../../test/environment-row.ts';
import { openWorld } from '../../../../test/environments/builds-world.ts';
import { type Harness, openHarness, settings } from '../../../../test/harness.ts';
import { createTransfersOn } from '../../../composition/environments/transfers.ts';
import { AppError } from '../../../core/errors.ts';
import { systemRandom } from '../../../core/ids.ts';
import { sql } from '../../../platform/database/sql.ts';
import { unpackTree } from '../tree.ts';
import type { Transfers } from './transfers.ts';

type Header = Parameters<ReturnType<typeof pack>['entry']>[0];

let h: Harness;
let transfers: Transfers;
/** Whether the stores are unreachable. */
const away = { isCut: false };
beforeAll(async () => {
  h = await openHarness({ database: fallibleDatabase(await openTestDatabase(), away) });
  transfers = createTransfersOn(h.database, {
    blobs: h.blobs,
    encryptionKeys: settings.encryptionKeys,
    clock: h.clock,
    random: systemRandom,
  });
});
afterAll(() => h.close());

let build: string;
let environment: string;
/** Each test sends from a different address, because refusals are counted by address. */
let from: string;
let count = 0;
beforeEach(() => {
  count += 1;
  build = `job_${count}`;
  environment = `env_${count}`;
  from = `192.0.2.${count}`;
});

const path = '/environment-files';

/** The response to GET with its bytes. */
async function fetched(ticket: string) {
  const {
    statusCode: status,
    rawPayload: bytes,
    headers,
  } = await h.app.web.inject({
    url: `/api/v2${path}`,
    remoteAddress: from,
    headers: { host: 'localhost:3000', authorization: `Bearer ${ticket}` },
  });
  return { status, bytes, headers };
}

const sent = (ticket: string, bytes: Buffer | Readable, type = 'application/gzip') =>
  h.call('PUT', path, { as: `Bearer ${ticket}`, raw: { type, bytes }, from });

function openFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-transfers-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = openFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

async function tarOf(...entries: Header[]): Promise<Buffer> {
  const tar = pack();
  // Entries without a time get the current one, so two archives may differ.
  const mtime = new Date(0);
  for (const header of entries) tar.entry({ mtime, ...header }, header.type === 'file' ? 'x' : '');
  tar.finalize();
  return await buffer(tar.pipe(createGzip()));
}

const oneFile = () => tarOf({ name: 'a.txt', type: 'file' });

/** Returns the statuses, lowest first. */
const statusesOf = (answers: readonly { readonly status: number }[]) =>
  answers.map(({ status }) => status).toSorted((one, other) => one - other);

async function stored(): Promise<string[]> {
  const found: string[] = [];
  for await (const { digest } of h.blobs.list()) found.push(digest);
  return found.toSorted();
}

describe('a source', () => {
  test('is fetched once, as it was packed', async () => {
    const folder = folderOf({ 'a.txt': 'text' });
    mkdirSync(join(folder, 'bin'));
    writeFileSync(join(folder, 'bin/run'), 'run', { mode: 0o755 });
    symlinkSync('../a.txt', join(folder, 'bin/link'));
    const ticket = await transfers.offerSource(build, folder);
    const { status, bytes, headers } = await fetched(ticket);
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([
      200,
      'application/gzip',
      'no-store',
    ]);
    const tree = openFolder();
    await unpackTree(Readable.from([bytes]), tree);
    expect(readFileSync(join(tree, 'bin/link'), 'utf8')).toBe('text');
    expect((readdirSync(tree, { recursive: true }) as string[]).toSorted()).toEqual([
      'a.txt',
      'bin',
      'bin/link',
      'bin/run',
    ]);
    expect((await fetched(ticket)).status).toBe(401);
  });

  test('that two pods request at once goes to one of them', async () => {
    const ticket = await transfers.offerSource(build, folderOf({ 'a.txt': 'two' }));
    const answers = await Promise.all([fetched(ticket), fetched(ticket)]);
    expect(statusesOf(answers)).toEqual([200, 401]);
  });

  test('of the next start of a build replaces the one before', async () => {
    const before = await transfers.offerSource(build, folderOf({ 'a.txt': 'before' }));
    const after = await transfers.offerSource(build, folderOf({ 'a.txt': 'after' }));
    expect([(await fetched(before)).status, (await fetched(after)).status]).toEqual([401, 200]);
  });
});

describe('an output', () => {
  test('is stored once, and its build gets it', async () => {
    const ticket = await transfers.expectOutput(build);
    expect(await transfers.outputOf(build)).toBeUndefined();
    const bytes = await tarOf(
      { name: 'bin/', type: 'directory' },
      { name: 'bin/run', type: 'file', mode: 0o4755 },
      { name: 'link', type: 'symlink', linkname: 'bin/run' },
    );
    const { status, data } = await sent(ticket, bytes);
    expect([status, data]).toEqual([201, { ...data, size: bytes.length, files: 2, bytes: 1 }]);
    expect(await transfers.outputOf(build)).toEqual(data);
    expect(await buffer(await h.blobs.read(data.digest))).toEqual(bytes);
    expect((await sent(ticket, await oneFile())).status).toBe(401);
    expect(await transfers.outputOf(build)).toEqual(data);
  });

  test('that is sent twice at once is taken once', async () => {
    const ticket = await transfers.expectOutput(build);
    const answers = await Promise.all([sent(ticket, await oneFile()), sent(ticket, await oneFile())]);
    expect(statusesOf(answers)).toEqual([201, 401]);
  });

  test('of another type than tar.gz is refused with the type', async () => {
    const ticket = await transfers.expectOutput(build);
    const { status, error } = await sent(ticket, await oneFile(), 'application/zip');
    expect([status, error.details.accepted]).toEqual([415, ['application/gzip']]);
  });

  const bad: [string, () => Promise<Buffer>][] = [
    ['a file out of the folder', () => tarOf({ name: '../x', type: 'file' })],
    ['an absolute path', () => tarOf({ name: '/tmp/x', type: 'file' })],
    ['a link out of the folder', () => tarOf({ name: 'a', type: 'symlink', linkname: '../x' })],
    [
      'a link that leads out through another',
      () =>
        tarOf(
          { name: 'd/', type: 'directory' },
          { name: 'd/up', type: 'symlink', linkname: '..' },
          { name: 'out', type: 'symlink', linkname: 'd/up/../x' },
        ),
    ],
    [
      'a file below a link',
      () => tarOf({ name: 'a', type: 'symlink', linkname: '.' }, { name: 'a/x', type: 'file' }),
    ],
    ['a name twice', () => tarOf({ name: 'a', type: 'file' }, { name: 'a', type: 'file' })],
    ['a device', () => tarOf({ name: 'a', type: 'character-device' })],
    ['a hard link', () => tarOf({ name: 'b', type: 'file' }, { name: 'a', type: 'link', linkname: 'b' })],
    ['a cut tar', async () => gzipSync(Buffer.alloc(700, 'x'))],
    ['a cut gzip file', async () => (await oneFile()).subarray(0, -4)],
    ['a wrong checksum', async () => Buffer.concat([(await oneFile()).subarray(0, -8), Buffer.alloc(8)])],
    ['no tar', async () => Buffer.from('<html>')],
    ['nothing', async () => Buffer.alloc(0)],
  ];
  test.each(bad)('T56 with %s is refused, stores nothing, and can be sent again', async (_, bytes) => {
    const ticket = await transfers.expectOutput(build);
    const before = await stored();
    const { status, error } = await sent(ticket, await bytes());
    expect([status, error?.code]).toEqual([422, 'upload_rejected']);
    expect(await stored()).toEqual(before);
    expect((await sent(ticket, await oneFile())).status).toBe(201);
  });

  test('whose sender breaks off stores nothing, and can be sent again', async () => {
    const ticket = await transfers.expectOutput(build);
    const before = await stored();
    const part = (await oneFile()).subarray(0, 20);
    const broken = new Readable({ read() {} });
    broken.push(part);
    queueMicrotask(() => broken.destroy(new Error('The pod is gone.')));
    await sent(ticket, broken).catch(() => undefined);
    expect(await stored()).toEqual(before);
    expect((await sent(ticket, await oneFile())).status).toBe(201);
  });
});

describe('a tree', () => {
  const digest = async () => (await h.blobs.write(Readable.from([await oneFile()]))).digest;

  test('has one ticket for an Environment and an artifact, for any number of pods', async () => {
    const tar = await digest();
    const ticket = await transfers.offerTree(environment, tar);
    expect(await transfers.offerTree(environment, tar)).toBe(ticket);
    expect(await transfers.offerTree(`${environment}-other`, tar)).not.toBe(ticket);
    expect(await transfers.offerTree(environment, 'a'.repeat(64))).not.toBe(ticket);
    for (const { status, bytes } of [await fetched(ticket), await fetched(ticket)])
      expect([status, bytes]).toEqual([200, await oneFile()]);
  });

  test('keeps its ticket after a new ENCRYPTION_KEY, until the Environment is torn down', async () => {
    const tar = await digest();
    const before = await transfers.offerTree(environment, tar);
    const next = createTransfersOn(h.database, {
      blobs: h.blobs,
      encryptionKeys: ['the-next-encryption-key-of-the-tests-01234', ...settings.encryptionKeys],
      clock: h.clock,
      random: systemRandom,
    });
    const after = await next.offerTree(environment, tar);
    expect(after).not.toBe(before);
    const other = await transfers.offerTree(`${environment}-other`, tar);
    const statuses = async () =>
      (await Promise.all([before, after, other].map(fetched))).map(({ status }) => status);
    expect(await statuses()).toEqual([200, 200, 200]);
    await transfers.closeEnvironment(environment);
    expect(await statuses()).toEqual([401, 401, 200]);
  });
});

test('T56 tickets that are unknown, used, withdrawn or for the other direction are refused alike', async () => {
  const used = await transfers.offerSource(build, folderOf({ a: 'used' }));
  await fetched(used);
  const withdrawn = [
    await transfers.offerSource(`${build}-ended`, folderOf({ a: 'ended' })),
    await transfers.expectOutput(`${build}-ended`),
  ];
  await transfers.closeBuild(`${build}-ended`);
  const source = await transfers.offerSource(`${build}-source`, folderOf({ a: 'source' }));
  const tree = await transfers.offerTree(environment, 'b'.repeat(64));
  const output = await transfers.expectOutput(build);
  const body = { raw: { type: 'application/gzip', bytes: await oneFile() }, from };
  const unknown = 'A'.repeat(43);
  const answers = [
    ...(await Promise.all(
      [unknown, used, output, ...withdrawn].map((one) => h.call('GET', path, { as: `Bearer ${one}`, from })),
    )),
    ...(await Promise.all(
      [unknown, used, source, tree, ...withdrawn].map((one) =>
        h.call('PUT', path, { ...body, as: `Bearer ${one}` }),
      ),
    )),
    await h.call('GET', path, { from }),
    await h.call('GET', path, { as: 'Basic eDp5', from }),
    await h.call('PUT', path, body),
  ];
  for (const { status, error, headers } of answers)
    expect([status, error, headers['www-authenticate']]).toEqual([
      401,
      answers[0]?.error,
      'Bearer realm="postern", error="invalid_token"',
    ]);
  expect(answers[0]?.error.code).toBe('invalid_credential');
  // The refused requests consumed no ticket.
  expect([(await fetched(source)).status, (await sent(output, await oneFile())).status]).toEqual([200, 201]);
});

test('T56 an address that sent too many bad tickets gets 429, and a good ticket from there still counts', async () => {
  const { failedAuthenticationsPerMinute: limit } = (await h.app.services.policies.read()).value;
  const statuses: number[] = [];
  for (let at = 0; at <= limit; at += 1) statuses.push((await fetched('B'.repeat(43))).status);
  expect([new Set(statuses.slice(0, -1)), statuses.at(-1)]).toEqual([new Set([401]), 429]);
  expect((await fetched(await transfers.offerSource(build, folderOf({ a: 'good' })))).status).toBe(200);
});

test('while a store is unavailable, pods get 503 and their tickets stay valid', async () => {
  const source = await transfers.offerSource(build, folderOf({ a: 'away' }));
  const output = await transfers.expectOutput(build);
  const both = async () => [(await fetched(source)).status, (await sent(output, await oneFile())).status];
  away.isCut = true;
  const withoutDatabase = await both();
  away.isCut = false;
  const { read, write } = h.blobs;
  const unavailable = () => Promise.reject(new AppError('store_unavailable'));
  Object.assign(h.blobs, { read: unavailable, write: unavailable });
  const withoutBlobs = await both();
  Object.assign(h.blobs, { read, write });
  expect([withoutDatabase, withoutBlobs, await both()]).toEqual([
    [503, 503],
    [503, 503],
    [200, 201],
  ]);
});

test('T56 no ticket is in a table, a log or an answer', async () => {
  const source = await transfers.offerSource(build, folderOf({ a: 'secret' }));
  const output = await transfers.expectOutput(build);
  const tree = await transfers.offerTree(environment, 'c'.repeat(64));
  const texts: string[] = [];
  for (const ticket of [source, source, tree, output])
    texts.push((await fetched(ticket)).bytes.toString('latin1'));
  for (const bytes of [Buffer.from('no tar'), await oneFile(), await oneFile()])
    texts.push((await sent(output, bytes)).text);
  const rows = await sql`select * from environment_tickets`.all(h.database.sql);
  const audit = await h.call('GET', '/audit/events', { as: await h.person('Ada', { admin: true }) });
  const places = [...texts, ...h.logged, JSON.stringify(rows), audit.text].join('\n');
  for (const ticket of [source, output, tree]) expect(places).not.toContain(ticket);
});

test('T35 pods reach these routes by the name of a Service, but never on a host of content', async () => {
  const statusOn = async (host: string, url = `/api/v2${path}`) =>
    (await h.app.web.inject({ url, headers: { host }, remoteAddress: from })).statusCode;
  expect(await statusOn('postern-web.postern.svc')).toBe(401);
  expect(await statusOn('postern-web.postern.svc', '/api/v2/config/surfaces')).toBe(421);
  expect(await statusOn('a.sites.localhost')).toBe(421);
});

test('the clean-ups remove a source once it was fetched, and the tickets of what has ended', async () => {
  const world = await openWorld({ engine: 'kubernetes' });
  const own = createTransfersOn(world.database, {
    blobs: world.blobs,
    encryptionKeys: settings.encryptionKeys,
    clock: world.clock,
    random: systemRandom,
  });
  const digests = async () => {
    const found: string[] = [];
    for await (const { digest } of world.blobs.list()) found.push(digest);
    return found;
  };
  const owners = async () =>
    (
      await sql<{ owner: string }>`
        select coalesce(build_id, environment_id) as owner from environment_tickets order by kind`.all(
        world.database.sql,
      )
    ).map(({ owner }) => owner);
  const jobId = await world.requestBuild();
  await own.offerSource(jobId, folderOf({ a: 'waits' }));
  await own.offerSource('job_gone', folderOf({ a: 'gone' }));
  await own.expectOutput(jobId);
  const now = world.clock.now();
  const row = (id: string) =>
    environmentRow(now, { id, uuid: id, label: id, creator: { kind: 'user', id: 'usr_1' } });
  await world.tx(async ({ environments }) => {
    await environments.insert(row('env_lives'), null);
    await environments.insert({ ...row('env_ended'), status: 'torn_down', deletedAt: now }, null);
  });
  for (const id of ['env_lives', 'env_ended', 'env_gone']) await own.offerTree(id, 'd'.repeat(64));
  await world.cleanSites();
  expect((await digests()).length).toBe(2);
  await world.buildCleanup.run();
  expect(await owners()).toEqual([jobId, jobId, 'env_lives']);
  await world.cleanSites();
  expect((await digests()).length).toBe(1);
  await own.closeBuild(jobId);
  await world.cleanSites();
  expect([await digests(), await owners()]).toEqual([[], ['env_lives']]);
});

test('a source whose bytes are being removed at that moment is offered by the next try', async () => {
  const world = await openWorld({ engine: 'kubernetes' });
  const { write } = world.blobs;
  const own = createTransfersOn(world.database, {
    blobs: {
      ...world.blobs,
      async write(source) {
        const blob = await write(source);
        await world.cleanSites();
        return blob;
      },
    },
    encryptionKeys: settings.encryptionKeys,
    clock: world.clock,
    random: systemRandom,
  });
  await expect(own.offerSource(build, folderOf({ a: 'going' }))).rejects.toMatchObject({
    code: 'store_unavailable',
  });
  const rows = await sql`select 1 from environment_tickets`.all(world.database.sql);
  expect(rows).toEqual([]);
});
