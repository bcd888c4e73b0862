import type { Engine } from '../src/features/engine/contract.ts';
import { systemAuditContext } from '../src/core/caller.ts';
import { defaultKeyPolicy } from '../src/features/keys/key-policy.ts';
import { environmentStore } from '../src/features/environments/environment/environment-store.ts';
import { environmentRow, serviceRow } from '../test/environment-row.ts';
import { startMeasuredApp } from './measured-app.ts';

// The whole server as npm start builds it, with one Environment, whose process writes a log all the time. Its engine runs
// nothing: it makes up the lines, and counts how often they are read. Started by server-process.ts.
const linesPerSecond = 200;
const text = 'x'.repeat(500);
const startedAt = Date.now();
let reads = 0;
const notHere = () => Promise.reject(new Error('This engine runs nothing.'));
const engine: Engine = {
  place: { engine: 'local', platform: 'bench' },
  build: notHere,
  apply: notHere,
  observe: async () => [],
  async logs(_environmentId, _service, after, limit) {
    reads += 1;
    const newest = Math.floor(((Date.now() - startedAt) * linesPerSecond) / 1_000);
    return Array.from({ length: Math.max(0, Math.min(limit, newest - after)) }, (_, index) => ({
      id: after + 1 + index,
      at: startedAt,
      stream: 'stdout',
      text,
    }));
  },
  address: async () => null,
  remove: async () => undefined,
  sweep: async () => [],
};

const { app, backends, config } = await startMeasuredApp(engine);
const { keys, policies } = app.services;
const { etag } = await policies.read();
await policies.put(systemAuditContext, etag, { ...defaultKeyPolicy, rateLimitPerMinute: 1_000_000 });
const { value } = await keys.create(
  systemAuditContext,
  { type: 'service' },
  { name: 'bench', scopes: ['env:read'], repositoryAccess: { mode: 'all' } },
);
const creator = { kind: 'user', id: 'usr_bench' } as const;
const environment = environmentRow(startedAt, { id: 'env_bench', uuid: 'bench', creator, label: 'bench' });
const store = environmentStore(backends.database.sql);
await store.insert(environment, null);
await store.putServices(environment.id, [serviceRow()]);
const address = await app.web.listen({ host: '127.0.0.1', port: config.port });
app.jobs.start();

process.on('message', (message) => {
  if (message === 'count') {
    process.send?.(reads);
    reads = 0;
  } else if (message === 'collect') {
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    process.send?.(heapUsed + external);
  } else
    void app
      .stop()
      .then(() => backends.close())
      .then(() => process.exit(0));
});
process.send?.({ address: `${address}/api/v2/environments/bench/logs`, key: value });
