import { Readable } from 'node:stream';
import type { AddressInfo } from 'node:net';
import { randomUUID } from 'node:crypto';
import { type Caller, systemAuditContext } from '../src/core/caller.ts';
import { hour } from '../src/core/clock.ts';
import { writeGrant } from '../src/features/grants/records.ts';
import { siteGrants } from '../src/features/grants/grants.ts';
import { pageOf } from './content.ts';
import { startMeasuredApp } from './measured-app.ts';

// The whole server as npm start builds it, with one public and one private site for each page size. Started by
// server-process.ts.
const { app, backends, config } = await startMeasuredApp();
const { keys, identity, sitesServices } = app.services;
const { sites, signer } = sitesServices;
const { key } = await keys.create(
  systemAuditContext,
  { type: 'service' },
  { name: 'bench', scopes: ['sites:write'], repositoryAccess: { mode: 'all' } },
);
const service: Caller = {
  kind: 'service_key',
  key: { ...key, repositoryNames: [], isBound: true, isSuspended: false, isTypeEnabled: true },
};
const { account } = await identity.accounts.create(systemAuditContext, {
  email: 'ada@example.com',
  name: 'Ada Lovelace',
  password: randomUUID(),
  roles: ['user'],
  groups: [],
  enabled: true,
});
const user = await identity.findUser(account.userId);
if (user === undefined) throw new Error('The account has no user.');
const person: Caller = {
  kind: 'session',
  user,
  sessionId: 'bench',
  expiresAt: Date.now() + hour,
  authenticatedAt: null,
};

/** The Host header of each size. */
const hosts: Record<string, string> = {};
const privateSites: Record<number, { id: string; host: string }> = {};
for (const size of [1, 100]) {
  const receive = (caller: Caller) =>
    sites.receive(caller, systemAuditContext, {
      kind: 'html',
      stream: Readable.from([pageOf(size)]),
      fileName: '',
      left: AbortSignal.any([]),
    });
  const shown = await sites.create(
    service,
    systemAuditContext,
    { visibility: 'public' },
    await receive(service),
  );
  const hidden = await sites.create(
    person,
    systemAuditContext,
    { visibility: 'private' },
    await receive(person),
  );
  const hostOf = (label: string) => new URL(sitesServices.siteAddresses.urlOf(label)).host;
  hosts[size] = hostOf(shown.label);
  privateSites[size] = { id: hidden.id, host: hostOf(hidden.label) };
}

/** A browser with a new grant, which lasts five minutes. */
async function letIn(size: number): Promise<{ host: string; cookie: string }> {
  const { id: siteId = '', host = '' } = privateSites[size] ?? {};
  const site = await app.services.read.sites.find(siteId);
  const generation = await app.services.read.sitesSwitch.generation();
  if (site === undefined) throw new Error('The site is gone.');
  await sitesServices.siteStates.publish(site);
  const { cookie, key } = signer.grantOf(`${site.id} ${Math.random()}`);
  const issuedAt = await backends.kv.time();
  const endsAt = issuedAt + 300_000;
  const record = {
    targetId: siteId,
    userId: account.userId,
    host,
    epoch: site.epoch,
    generation,
    issuedAt,
    endsAt,
  };
  await backends.kv.set(key, writeGrant(signer, key, record), { ttlMs: 300_000 });
  return { host, cookie: `${siteGrants.cookie}=${cookie}` };
}

await new Promise<void>((resolve) => app.gateway.listen(config.gatewayPort, '127.0.0.1', resolve));
const webAddress = await app.web.listen({ host: '127.0.0.1', port: config.port });
app.jobs.start();
const { port } = app.gateway.address() as AddressInfo;
process.on('message', (message) => {
  if (typeof message === 'number') void letIn(message).then((grant) => process.send?.(grant));
  else
    void app
      .stop()
      .then(() => backends.close())
      .then(() => process.exit(0));
});
process.send?.({ address: `http://127.0.0.1:${port}`, webAddress, hosts });
