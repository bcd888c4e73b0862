import { execFile } from 'node:child_process';
import { once } from 'node:events';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { type Harness, openHarness, settings as appSettings } from '../../../test/harness.ts';
import { createTransfersOn } from '../../composition/environments/transfers.ts';
import { ConfigError } from '../../config/config-error.ts';
import { readPodSettings } from '../../config/pod-settings.ts';
import { systemRandom } from '../../core/ids.ts';
import type { Transfers } from '../../features/engine/transfers/transfers.ts';
import { unpackTree } from '../../features/engine/tree.ts';
import { type PodDeps, runPodFetch, runPodSend } from './pod.ts';

let h: Harness;
let transfers: Transfers;
let url: string;
/** Nothing listens there. */
let nowhere: string;
beforeAll(async () => {
  h = await openHarness();
  transfers = createTransfersOn(h.database, {
    blobs: h.blobs,
    encryptionKeys: appSettings.encryptionKeys,
    clock: h.clock,
    random: systemRandom,
  });
  nowhere = await closedAddress();
  await h.app.web.listen({ host: '127.0.0.1', port: 0 });
  const { port } = h.app.web.server.address() as AddressInfo;
  url = `http://127.0.0.1:${port}/api/v2/environment-files`;
});
afterAll(() => h.close());

async function closedAddress(): Promise<string> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `http://127.0.0.1:${port}/`;
}

let build: string;
let count = 0;
let said: string[];
let waits: number[];
beforeEach(() => {
  count += 1;
  build = `job_${count}`;
  said = [];
  waits = [];
  vi.spyOn(console, 'error').mockImplementation((text: string) => void said.push(text));
});
afterEach(() => vi.restoreAllMocks());

function openFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-pod-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** The program in a pod with this ticket. Its waiting takes no time. */
function podWith(ticket: string, more: Partial<PodDeps> & { url?: string } = {}): PodDeps {
  const terminationFile = join(openFolder(), 'termination-log');
  return {
    settings: { url: more.url ?? url, ticket, terminationFile },
    fetch: more.fetch ?? fetch,
    async wait(ms) {
      waits.push(ms);
      await more.wait?.(ms);
    },
  };
}

const failureOf = ({ settings }: PodDeps) => JSON.parse(readFileSync(settings.terminationFile, 'utf8'));

function treeIn(folder: string) {
  return (readdirSync(folder, { recursive: true }) as string[]).toSorted().map((name) => {
    const { mode } = lstatSync(join(folder, name));
    return [name, (mode & 0o170_777).toString(8)];
  });
}

function someTree(): string {
  const folder = openFolder();
  mkdirSync(join(folder, 'app/dist'), { recursive: true });
  writeFileSync(join(folder, 'app/dist/run'), 'run', { mode: 0o755 });
  writeFileSync(join(folder, 'app/dist/a.txt'), 'text');
  symlinkSync('a.txt', join(folder, 'app/dist/link'));
  symlinkSync('nowhere', join(folder, 'app/dist/broken'));
  return folder;
}

test('what Postern offers is fetched, and what a build made of it is sent, with modes and links', async () => {
  const [source, work, back] = [someTree(), openFolder(), openFolder()];
  writeFileSync(join(work, 'left'), 'by a container that ended');
  expect(await runPodFetch(podWith(await transfers.offerSource(build, source)), work)).toBe(0);
  expect(treeIn(work)).toEqual(treeIn(source));
  const sending = podWith(await transfers.expectOutput(build));
  expect(await runPodSend(sending, work, { directory: 'app', output: 'dist' })).toBe(0);
  const artifact = await transfers.outputOf(build);
  expect(artifact).toMatchObject({ files: 4, bytes: 7 });
  await unpackTree(await h.blobs.read(artifact?.digest ?? ''), back);
  expect(treeIn(back)).toEqual(treeIn(join(source, 'app/dist')));
  expect([said, waits]).toEqual([[], []]);
});

test('the same files give the same archive', async () => {
  const digests: unknown[] = [];
  for (const id of [build, `${build}-again`]) {
    const pod = podWith(await transfers.expectOutput(id));
    expect(await runPodSend(pod, someTree(), { directory: '.', output: '.' })).toBe(0);
    digests.push((await transfers.outputOf(id))?.digest);
  }
  expect(digests[0]).toBe(digests[1]);
});

test('a ticket that is not valid fails at once, with a reason for the engine that does not repeat it', async () => {
  const ticket = 'A'.repeat(43);
  for (const run of [
    (pod: PodDeps) => runPodFetch(pod, openFolder()),
    (pod: PodDeps) => runPodSend(pod, someTree(), { directory: '.', output: '.' }),
  ]) {
    const pod = podWith(ticket);
    expect([await run(pod), waits]).toEqual([1, []]);
    const failure = failureOf(pod);
    expect(failure).toEqual({
      reason: expect.stringMatching(/^no_(?:source|output)$/),
      message: expect.stringContaining('The ticket is not valid'),
      fix: 'Deploy again. If it fails again, ask an administrator.',
    });
    expect(said.at(-1)).toBe(`postern: ${failure.message} ${failure.fix}`);
  }
  expect(said.join('')).not.toContain(ticket);
});

test('while web is replaced, the program tries again: after 503, and after a refused connection', async () => {
  let answers = 0;
  const rolling: typeof fetch = async (...args) => {
    answers += 1;
    if (answers === 1) return new Response('<html>no upstream', { status: 503 });
    return await fetch(answers === 2 ? nowhere : args[0], args[1]);
  };
  const source = podWith(await transfers.offerSource(build, someTree()), { fetch: rolling });
  expect([await runPodFetch(source, openFolder()), waits]).toEqual([0, [2_000, 2_000]]);
  answers = 0;
  const output = podWith(await transfers.expectOutput(build), { fetch: rolling });
  expect(await runPodSend(output, someTree(), { directory: '.', output: '.' })).toBe(0);
  expect(await transfers.outputOf(build)).toMatchObject({ files: 4 });
});

test('after a minute without web, the program fails with what is wrong', async () => {
  const pod = podWith('A'.repeat(43), { url: nowhere });
  expect(await runPodFetch(pod, openFolder())).toBe(1);
  expect(waits.reduce((sum, ms) => sum + ms, 0)).toBe(60_000);
  expect(failureOf(pod)).toMatchObject({
    reason: 'no_source',
    message: 'The pod could not fetch its files: no connection to Postern (ECONNREFUSED).',
  });
});

test.each([
  ['no_directory', { directory: 'missing', output: '.' }, 'no folder missing'],
  ['no_output', { directory: 'app', output: 'missing' }, 'no folder missing in app'],
  ['unsafe_output', { directory: '.', output: 'unsafe' }, 'up in the output is a link that leads out'],
])('an output by other rules fails with %s', async (reason, build, words) => {
  const folder = someTree();
  mkdirSync(join(folder, 'unsafe'));
  symlinkSync('..', join(folder, 'unsafe/up'));
  const pod = podWith('A'.repeat(43));
  expect(await runPodSend(pod, folder, build)).toBe(1);
  expect(failureOf(pod)).toMatchObject({ reason, message: expect.stringContaining(words) });
});

test.each([
  [422, { message: 'Too large.', details: { reason: 'output_too_large' } }, 'output_too_large', 'Too large.'],
  [507, { message: 'No space.', hint: 'Ask an administrator.' }, 'disk_full', 'No space.'],
  [500, { message: 'Wrong.' }, 'no_output', 'The pod could not send the output of the build: Wrong.'],
])('an answer %i becomes the reason of the failure', async (status, error, reason, message) => {
  const pod = podWith('A'.repeat(43), {
    fetch: async () => Response.json({ request_id: 'r', data: null, error }, { status }),
  });
  expect(await runPodSend(pod, someTree(), { directory: '.', output: '.' })).toBe(1);
  expect([failureOf(pod), waits]).toMatchObject([{ reason, message }, []]);
});

test('an archive that is cut off on its way fails, and leaves its reason', async () => {
  const pod = podWith('A'.repeat(43), { fetch: async () => new Response('not a whole archive') });
  expect(await runPodFetch(pod, openFolder())).toBe(1);
  expect(failureOf(pod)).toMatchObject({ reason: 'no_source' });
});

test('settings that are missing are named, and none is repeated', () => {
  const read = (env: Record<string, string>) => () => readPodSettings(env);
  expect(read({})).toThrow(ConfigError);
  const wrong = read({ TRANSFER_URL: 'ftp://secret', TRANSFER_TICKET: 'secret\n' });
  expect(wrong).toThrow(/TRANSFER_URL: is not an http or https URL[^]*TRANSFER_TICKET: is not a ticket/);
  expect(wrong).not.toThrow('secret');
});

test('the command needs no setting but its two, and loads neither the settings nor the app', async () => {
  const hook = `import { registerHooks } from 'node:module';
    registerHooks({ load(url, context, next) { console.log(url); return next(url, context); } });`;
  const folder = openFolder();
  const { stdout: loaded } = await promisify(execFile)(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(hook)}`, 'src/main.ts', 'pod', 'fetch', folder],
    { env: { TRANSFER_URL: url, TRANSFER_TICKET: await transfers.offerSource(build, someTree()) } },
  );
  expect(readFileSync(join(folder, 'app/dist/link'), 'utf8')).toBe('text');
  expect(loaded).toContain('/src/operations/pod/pod.ts');
  expect(loaded).not.toMatch(/src\/config\/(?:read|settings)\.ts|src\/composition\/|\/zod\//);
});
