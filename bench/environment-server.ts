import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createApp } from '../src/composition/app.ts';
import { openBackends } from '../src/composition/backends.ts';
import { readConfig } from '../src/config/read.ts';
import { systemAuditContext } from '../src/core/caller.ts';
import { day } from '../src/core/clock.ts';
import { systemRandom } from '../src/core/ids.ts';
import type { Environment } from '../src/features/environments/environment.ts';
import { environmentStore } from '../src/features/environments/environment-store.ts';
import { generateEnvironmentLabel, serviceLabel } from '../src/features/environments/labels.ts';
import { defaultEnvironmentPolicy } from '../src/features/environments/policy/environment-policy.ts';
import { migrate } from '../src/platform/database/migrate.ts';
import { keepTickShapes } from '../src/platform/tick-shapes.ts';
import { Browser } from '../test/faults/browser.ts';

// The whole server as npm start builds it, with one Environment for members, whose one process is behind the port in the
// first message. A person has opened it. No engine runs: the bench started the process. Started by server-process.ts.
keepTickShapes();
const config = readConfig();
const backends = await openBackends(config, { isServer: true });
await migrate(backends.database);
const app = await createApp(
  {
    ...config,
    passwordCost: { memoryKib: 8, passes: 1 },
    gatewayLimits: { perAddress: 0, perHost: 0 },
  },
  backends,
);
await app.start();
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
  // Without an administrator nobody can sign in.
  roles: ['user', 'admin'],
  groups: [],
  enabled: true,
});

/** An Environment whose deploy has ended; returns the URL of its service. */
async function serve(processPort: number): Promise<string> {
  const label = generateEnvironmentLabel(systemRandom);
  const now = Date.now();
  const environment: Environment = {
    id: 'env_bench',
    uuid: 'bench',
    repositoryId: 'rep_bench',
    repository: 'acme/shop',
    branch: 'main',
    pinnedSha: null,
    sha: null,
    creator: { kind: 'user', id: account.userId },
    trigger: 'api',
    access: 'members',
    isAccessOpen: false,
    label,
    services: [],
    env: {},
    initEnv: {},
    ttlHours: null,
    deployEnabled: true,
    autoTrack: false,
    trackDefaultBranches: false,
    status: 'deployed',
    statusMessage: null,
    liveDeployId: null,
    createdAt: now,
    updatedAt: now,
    expiresAt: now + day,
    deletedAt: null,
    revision: 1,
  };
  const store = environmentStore(backends.database.sql);
  await store.insert(environment, null);
  await store.addLabel(label, environment.id, now);
  await store.putServices(environment.id, [
    {
      name: 'api',
      kind: 'process',
      status: 'ready',
      reason: null,
      isExposed: true,
      routes: {},
      spa: false,
      url: null,
      artifactId: null,
      address: `127.0.0.1:${processPort}`,
    },
  ]);
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
