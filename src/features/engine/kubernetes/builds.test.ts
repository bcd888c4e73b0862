import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { V1ContainerStatus, V1Job, V1Pod } from '@kubernetes/client-node';
import { expect, onTestFinished, test } from 'vitest';
import { openBuildLog } from '../build-log.ts';
import { type BuildOutcome, EngineUnavailable } from '../contract.ts';
import { createBuilds } from './builds.ts';
import type { Cluster } from './cluster.ts';
import { labels } from './objects.ts';

const artifact = { digest: '0'.repeat(64), size: 1, files: 1, bytes: 1 };

/** Kubernetes with one build. Each read of the clock advances it by 6 s. */
function opened(pod: V1Pod, { hasOutput = false, removes = true } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'postern-builds-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const state = { isLost: !removes, closed: [] as string[] };
  let left: V1Pod[] = [];
  const job: V1Job = {
    metadata: { name: 'one', uid: 'job', labels: { [labels.build]: 'job_one' } },
    status: {
      conditions: [
        {
          type: hasOutput ? 'Complete' : 'Failed',
          status: 'True',
        },
      ],
    },
  };
  const metadata = { uid: 'pod', name: 'pod', labels: { [labels.build]: 'job_one' } };
  const seen: V1Pod = Object.assign(pod, { metadata });
  const cluster = {
    async apply(object: { kind?: string }) {
      if (object.kind === 'Job') left = [seen];
      return object.kind === 'Job' ? job : object;
    },
    async merge() {},
    async deleteAll(_kind: string, selector: string) {
      if (!state.isLost || !selector.includes('job_one')) left = [];
    },
    async list(kind: string, selector: string) {
      return { items: kind === 'pods' && selector.includes('job_one') ? left : [], version: '1' };
    },
    // The log of a lost node: it sends nothing and never ends.
    async log(_source: unknown, _onChunk: unknown, signal: AbortSignal) {
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    },
  } as unknown as Cluster;
  const all = { jobs: [job], pods: [seen], events: [] } as Record<string, unknown>;
  let now = 0;
  const builds = createBuilds({
    cluster,
    view: {
      start: async () => undefined,
      stop: async () => undefined,
      all: (kind) => all[kind] as never,
      changed: () => new Promise((resolve) => setTimeout(resolve, 5)),
    },
    place: {
      namespace: 'environments',
      podImage: 'postern:1',
      transferUrl: 'http://web/',
    },
    transfers: {
      offerSource: async () => 'ticket',
      expectOutput: async () => 'ticket',
      outputOf: async () => (hasOutput ? artifact : undefined),
      closeBuild: async (id) => void state.closed.push(id),
    },
    limits: {
      timeMs: 1_000,
      processes: 1,
      memoryBytes: 1,
      fileBytes: 1,
      diskBytes: 1,
      outputFiles: 1,
    },
    folder,
    now: () => (now += 6_000),
    later: (work, ms) => void setTimeout(work, ms / 1_000),
  });
  const log = openBuildLog({ secrets: [], maxBytes: 1_000, now: () => 0, write: () => undefined });
  const wanted = {
    id: 'job_one',
    image: 'node:24',
    command: 'make',
    directory: '.',
    output: '.',
    variables: {},
    secrets: {},
    fill: async () => undefined,
  };
  const build = (): Promise<BuildOutcome> => builds.build(wanted, log, new AbortController().signal);
  return { builds, state, build };
}

const container = (name: string, state: V1ContainerStatus['state']): V1ContainerStatus => ({
  name,
  image: '',
  imageID: '',
  ready: false,
  restartCount: 0,
  ...(state && { state }),
});
const running = container('build', { running: { startedAt: new Date(0) } });

test('a pod that never goes, with a log that never ends, holds up neither its build nor the next nor a sweep', async () => {
  const pod: V1Pod = { status: { phase: 'Running', containerStatuses: [running] } };
  const { builds, state, build } = opened(pod, { hasOutput: true, removes: false });
  expect(await build()).toEqual({ kind: 'built', artifact });
  expect(state.closed).toEqual(['job_one']);
  const stays = 'Kubernetes still has objects of the build that it was told to delete.';
  await expect(build()).rejects.toThrow(stays);
  state.closed.length = 0;
  await expect(builds.sweep(['job_one', 'job_two'])).rejects.toThrow(stays);
  expect(state.closed).toEqual(['job_two']);
  state.isLost = false;
  expect(await builds.sweep(['job_one'])).toEqual(['job_one']);
});

const killed = { terminated: { exitCode: 137, reason: 'OOMKilled' } };
test.each<[why: string, isItsOwn: boolean, status: V1Pod['status']]>([
  ['send of Postern used more', true, { containerStatuses: [container('send', killed)] }],
  ['fetch of Postern used more', true, { initContainerStatuses: [container('fetch', killed)] }],
  ['The node was low on', true, { reason: 'Evicted', message: 'The node was low on resource: inodes.' }],
  ['Node is shutting down', false, { reason: 'Terminated', message: 'Node is shutting down.' }],
])('a pod that ends without an end of its command: %s', async (why, isItsOwn, status) => {
  const end = await opened({ status: Object.assign({ phase: 'Failed' }, status) })
    .build()
    .catch((error: unknown) => error);
  expect(end).toBeInstanceOf(EngineUnavailable);
  expect(end).toMatchObject({ message: expect.stringContaining(why), isItsOwn });
});
