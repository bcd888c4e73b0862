import { setImmediate } from 'node:timers/promises';
import type { V1Pod } from '@kubernetes/client-node';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { EngineUnavailable } from '../contract.ts';
import type { Cluster } from './cluster.ts';
import { createView } from './view.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }));
afterEach(() => void vi.useRealTimers());

/** An API server with one pod, whose watches send what `tell` sends. */
function apiServer() {
  const state = { phase: 'Pending', isAway: false, isDeaf: false };
  let tell: (phase: string) => void = () => undefined;
  const pod = (phase: string): V1Pod => ({ metadata: { uid: 'one' }, status: { phase } });
  const cluster: Pick<Cluster, 'list' | 'watch'> = {
    async list(kind) {
      if (state.isAway) throw new EngineUnavailable('Kubernetes cannot be reached: ECONNREFUSED.');
      // The tests request only pods.
      return { items: (kind === 'pods' ? [pod(state.phase)] : []) as never[], version: '1' };
    },
    async watch(kind, _version, signal, onChange) {
      if (kind === 'pods' && !state.isDeaf) tell = (phase) => onChange('MODIFIED', pod(phase) as never);
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      tell = () => undefined;
    },
  };
  return { state, cluster, tell: (phase: string) => tell(phase) };
}

async function opened(server: ReturnType<typeof apiServer>) {
  const onDefect = vi.fn<(error: unknown) => void>();
  const view = createView({ cluster: server.cluster, now: Date.now, onDefect });
  await view.start();
  await setImmediate();
  const phase = () => view.all('pods')[0]?.status?.phase;
  const after = async (ms: number) => {
    await vi.advanceTimersByTimeAsync(ms);
    await setImmediate();
  };
  return { view, phase, after, onDefect };
}

test('a watch tells of a change at once', async () => {
  const server = apiServer();
  const { view, phase } = await opened(server);
  const changed = view.changed();
  server.tell('Running');
  await changed;
  expect(phase()).toBe('Running');
  await view.stop();
});

test('a watch that says nothing any more does not matter: a list follows within 31 s', async () => {
  const server = apiServer();
  server.state.isDeaf = true;
  const { view, phase, after } = await opened(server);
  server.state.phase = 'Running';
  await after(31_000);
  expect(phase()).toBe('Running');
  await view.stop();
});

test('the last known state stays while Kubernetes is unavailable for a moment; after two minutes it is not used any more', async () => {
  const server = apiServer();
  const { view, phase, after, onDefect } = await opened(server);
  server.state.isAway = true;
  await after(60_000);
  expect(phase()).toBe('Pending');
  await after(120_000);
  expect(phase).toThrow(new EngineUnavailable('Kubernetes cannot be reached: ECONNREFUSED.'));
  server.state.isAway = false;
  await after(2_000);
  expect(phase()).toBe('Pending');
  expect(onDefect).not.toHaveBeenCalled();
  await view.stop();
});

test('it starts while Kubernetes is unavailable', async () => {
  const server = apiServer();
  server.state.isAway = true;
  const { view, phase } = await opened(server);
  expect(phase).toThrow(EngineUnavailable);
  await view.stop();
});
