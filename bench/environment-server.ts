import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { systemAuditContext } from '../src/core/caller.ts';
import { systemRandom } from '../src/core/ids.ts';
import { environmentStore } from '../src/features/environments/environment/environment-store.ts';
import { generateEnvironmentLabel, serviceLabel } from '../src/features/environments/environment/labels.ts';
import { defaultEnvironmentPolicy } from '../src/features/environments/policy/environment-policy.ts';
import { environmentRow, serviceRow } from '../test/environment-row.ts';
import { Browser } from '../test/faults/browser.ts';
import { startMeasuredApp } from './measured-app.ts';

// The whole server as npm start builds it, with one Environment for members, whose one process is behind the port in the
// first message. A person has opened it. No engine runs: the bench started the process. Started by server-process.ts.
const { app, backends, config } = await startMeasuredApp();
const { identity, environmentServices, sitesServices, feed } = app.services;
const { environmentPolicy } = environmentServices;
// A grant outlives the whole bench.
const policy = { ...defaultEnvironmentPolicy, enabled: true, grantMinutes: 60 };
await environmentPolicy.put(systemAuditContext, (await environmentPolicy.read()).etag, policy);

const [email, password] = ['ada@example.com', 'correct horse battery staple'];
const { account } = await identity.accounts.create(systemAuditContext, {
  email,
  name: 'Ada Lovelace',
  password,
  // Without an administrator no one can sign in.
  roles: ['user', 'admin'],
  groups: [],
  enabled: true,
});

/** An Environment whose deploy has ended; returns the URL of its service. */
async function serve(processPort: number): Promise<string> {
  const label = generateEnvironmentLabel(systemRandom);
  const now = Date.now();
  const creator = { kind: 'user', id: account.userId } as const;
  const environment = environmentRow(now, { id: 'env_bench', uuid: 'bench', creator, label });
  const store = environmentStore(backends.database.sql);
  await store.insert(environment, null);
  await store.addLabel(label, environment.id, now);
  await store.putServices(environment.id, [serviceRow({ address: `127.0.0.1:${processPort}` })]);
  feed.announce({ topic: 'environment', subject: environment.id });
  return `${sitesServices.siteAddresses.urlOf(serviceLabel('api', label))}1`;
}

await new Promise<void>((resolve) => app.gateway.listen(config.gatewayPort, '127.0.0.1', resolve));
await app.web.listen({ host: '127.0.0.1', port: config.port });
app.jobs.start();
const { port } = app.gateway.address() as AddressInfo;

const [processPort]: unknown[] = await once(process, 'message');
const url = await serve(Number(processPort));
const ada = new Browser(`http://localhost:${config.port}`);
await ada.signIn(email, password);
const opened = await ada.open(url);
if (opened.status !== 200) throw new Error(`The Environment answered ${opened.status}: ${opened.text}`);
ada.disconnect();

process.on('message', (message) => {
  if (message === 'collect') {
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    process.send?.(heapUsed + external);
  } else
    void app
      .stop()
      .then(() => backends.close())
      .then(() => process.exit(0));
});
process.send?.({
  address: `http://127.0.0.1:${port}`,
  headers: { Host: new URL(url).host, Cookie: ada.cookies(url) },
});
