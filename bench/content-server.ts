import { Readable } from 'node:stream';
import type { AddressInfo } from 'node:net';
import { randomUUID } from 'node:crypto';
import { createApp } from '../src/app.ts';
import { readConfig } from '../src/config.ts';
import { type Caller, systemAct } from '../src/core/caller.ts';
import { hour } from '../src/core/clock.ts';
import { writeGrant } from '../src/features/grants/records.ts';
import { migrate } from '../src/platform/database/migrate.ts';
import { openParts } from '../src/parts.ts';
import { keepTickShapes } from '../src/platform/tick-shapes.ts';
import { grantCookie } from '../src/surfaces/gateway/private.ts';
import { pageOf } from './content.ts';

// The whole server as npm start builds it, with one public and one private site a size to measure with. Started by content-process.ts.
keepTickShapes();
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
const { keys, identity, sitesDoors } = app.doors;
const { sites, seal } = sitesDoors;
const { key } = await keys.create(
  systemAct,
  { type: 'service' },
  { name: 'bench', scopes: ['sites:write'], repositoryAccess: { mode: 'all' } },
);
const service: Caller = {
  kind: 'service_key',
  key: { ...key, repositoryNames: [], isBound: true, isSuspended: false, isTypeEnabled: true },
};
const { account } = await identity.accounts.create(systemAct, {
  email: 'ada@example.com',
  name: 'Ada Lovelace',
  password: randomUUID(),
  roles: ['user'],
  groups: [],
  enabled: true,
});
const user = await identity.findUser(account.userId);
if (user === undefined) throw new Error('The account has no user.');
const person: Caller = { kind: 'session', user, sessionId: 'bench', expiresAt: Date.now() + hour };

/** The Host header of each size. */
const hosts: Record<string, string> = {};
const privateSites: Record<number, { id: string; host: string }> = {};
for (const size of [1, 100]) {
  const receive = (caller: Caller) =>
    sites.receive(caller, systemAct, {
      kind: 'html',
      stream: Readable.from([pageOf(size)]),
      fileName: '',
      left: AbortSignal.any([]),
    });
  const shown = await sites.create(service, systemAct, { visibility: 'public' }, await receive(service));
  const hidden = await sites.create(person, systemAct, { visibility: 'private' }, await receive(person));
  const hostOf = (label: string) => new URL(sitesDoors.siteAddresses.urlOf(label)).host;
  hosts[size] = hostOf(shown.label);
  privateSites[size] = { id: hidden.id, host: hostOf(hidden.label) };
}

/** A browser that was let in just now, for the five minutes a grant lasts. */
async function letIn(size: number): Promise<{ host: string; cookie: string }> {
  const { id: siteId = '', host = '' } = privateSites[size] ?? {};
  const site = await app.doors.read.sites.find(siteId);
  const generation = await app.doors.read.sitesSwitch.generation();
  if (site === undefined) throw new Error('The site is gone.');
  await sitesDoors.siteStates.publish(site);
  const { cookie, key } = seal.mintGrant();
  const issuedAt = await parts.kv.time();
  const endsAt = issuedAt + 300_000;
  const record = { siteId, userId: account.userId, host, epoch: site.epoch, generation, issuedAt, endsAt };
  await parts.kv.set(key, writeGrant(seal, key, record), { ttlMs: 300_000 });
  return { host, cookie: `${grantCookie}=${cookie}` };
}

await new Promise<void>((resolve) => app.gateway.listen(config.gatewayPort, '127.0.0.1', resolve));
app.jobs.start();
const { port } = app.gateway.address() as AddressInfo;
process.on('message', (message) => {
  if (typeof message === 'number') void letIn(message).then((grant) => process.send?.(grant));
  else
    void app
      .stop()
      .then(() => parts.close())
      .then(() => process.exit(0));
});
process.send?.({ address: `http://127.0.0.1:${port}`, hosts });
