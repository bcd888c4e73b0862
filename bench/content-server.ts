import { Readable } from 'node:stream';
import type { AddressInfo } from 'node:net';
import { createApp } from '../src/app.ts';
import { readConfig } from '../src/config.ts';
import { systemAct } from '../src/core/caller.ts';
import { migrate } from '../src/platform/database/migrate.ts';
import { openParts } from '../src/parts.ts';
import { pageOf } from './content.ts';

// The whole server as npm start builds it, with one public site a size to measure with. Started by content-process.ts.
const config = readConfig();
const parts = await openParts(config, { isServer: true });
await migrate(parts.database, new URL('../migrations', import.meta.url).pathname);
const app = await createApp(
  {
    ...config,
    passwordCost: { memoryKib: 8, passes: 1 },
    gatewayLimits: { perAddress: 1_000_000_000, perHost: 1_000_000_000 },
  },
  parts,
);
await app.start();
const { keys, sitesDoors } = app.doors;
const { key } = await keys.create(
  systemAct,
  { type: 'service' },
  { name: 'bench', scopes: ['sites:write'], repositoryAccess: { mode: 'all' } },
);
const caller = {
  kind: 'service_key',
  key: { ...key, repositoryNames: [], isBound: true, isSuspended: false, isTypeEnabled: true },
} as const;

/** The Host header of each size. */
const hosts: Record<string, string> = {};
for (const size of [1, 100]) {
  const upload = { kind: 'html', stream: Readable.from([pageOf(size)]) } as const;
  const received = await sitesDoors.sites.receive(caller, systemAct, upload);
  const site = await sitesDoors.sites.create(caller, systemAct, { visibility: 'public' }, received);
  hosts[size] = new URL(sitesDoors.siteAddresses.urlOf(site.label)).host;
}

await new Promise<void>((resolve) => app.gateway.listen(config.gatewayPort, '127.0.0.1', resolve));
app.jobs.start();
const { port } = app.gateway.address() as AddressInfo;
process.on('message', () => {
  void app
    .stop()
    .then(() => parts.close())
    .then(() => process.exit(0));
});
process.send?.({ address: `http://127.0.0.1:${port}`, hosts });
