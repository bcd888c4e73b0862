import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createHeldRequests } from './held-requests.ts';

const request = () => ({ headers: {}, socket: new EventEmitter() }) as unknown as IncomingMessage;

function made() {
  const state = { isAsleep: true, asked: 0, pausedMs: 0 };
  const held = createHeldRequests({
    async askToWake() {
      state.asked += 1;
      throw new Error('The store is unavailable.');
    },
    async pause(ms) {
      state.pausedMs += ms;
      await setImmediate();
    },
  });
  const hold = (one: IncomingMessage, service = 'api') =>
    held.wait(one, { environmentId: 'env_1', service, isAsleep: () => state.isAsleep });
  return { state, hold };
}

test('32 requests wait for a service; one that leaves makes room, and all are let go together', async () => {
  const { state, hold } = made();
  const requests = Array.from({ length: 32 }, request);
  const waiting = requests.map((one) => hold(one));
  expect(await hold(request())).toBe(false);
  requests[0]?.socket.emit('close');
  expect(await waiting[0]).toBe(false);
  const next = hold(request());
  expect(await hold(request())).toBe(false);
  state.isAsleep = false;
  expect(new Set(await Promise.all([...waiting.slice(1), next]))).toEqual(new Set([true]));
  expect(state.asked).toBe(1);
});

test('256 requests wait in all', async () => {
  const { state, hold } = made();
  const waiting = Array.from({ length: 256 }, (_, at) => hold(request(), `service-${at % 8}`));
  expect(await hold(request(), 'another')).toBe(false);
  state.isAsleep = false;
  expect(new Set(await Promise.all(waiting))).toEqual(new Set([true]));
});

test('a request waits 30 seconds for a service that does not wake, and the next one waits as long', async () => {
  const { state, hold } = made();
  expect(await hold(request())).toBe(false);
  expect(state.pausedMs).toBe(30_000);
  expect(await hold(request())).toBe(false);
  expect(state.pausedMs).toBe(60_000);
});
