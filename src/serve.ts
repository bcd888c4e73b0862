import type { AddressInfo } from 'node:net';
import type { AppSettings } from './app.ts';
import type { Config, Workload } from './config.ts';
import { greetBriefly, listen, openOperations, runUntilStopped } from './running.ts';
import { type OpenParts, openParts } from './parts.ts';

/**
 * All workloads in one process, or web or worker on its own: opens the parts, builds the app, listens, and stops in order
 * at SIGTERM or SIGINT. `limits`: for a fuzzer, which needs more changes than a person.
 */
export async function serve(
  config: Config,
  workload: Exclude<Workload, 'gateway'> = 'all',
  limits: Pick<AppSettings, 'changesPerMinute'> = {},
): Promise<number> {
  // The key-value store has a quarter of a second to answer, which a busy processor, or the share of one that a pod has,
  // spends on reading the program: so that comes first.
  if (config.kvUrl !== null) await import('./app.ts');
  const opening = openParts(config, {
    isServer: true,
    onFirstStart: () => console.log(`postern: first start, making the database in ${config.dataDir} …`),
  });
  // Whoever awaits it below sees a failure; until then it must not end the process.
  opening.catch(() => undefined);
  // The embedded database opens in its thread meanwhile.
  const { createApp, productionCost } = await import('./app.ts');
  const { applyMigrations } = await import('./commands.ts');
  const { warnOfHosts } = await import('./host-rules.ts');
  const parts = await opening;
  await applyMigrations(config, parts);
  if (workload !== 'worker') warnOfHosts(config, parts.log);
  const settings = { ...config, ...limits, workload, passwordCost: productionCost, overloadDelayMs: 1_000 };
  const app = await createApp(settings, parts);
  await app.start();
  const { firstAdministrator } = app.doors.identity;
  const bootstrap =
    workload === 'worker'
      ? null
      : config.bootstrapAdmin && (await firstAdministrator.ensure(config.bootstrapAdmin));

  if (workload !== 'worker') await app.web.listen({ host: config.host, port: config.port });
  if (workload === 'all') await listen(app.gateway, config.host, config.gatewayPort);
  const operations = await openOperations(config, app.doors.metrics, parts);
  app.jobs.start();
  if (workload === 'worker') greetBriefly(workload, config, parts);
  else await greet(config, parts, { bound: app.web.server.address(), administrator: firstAdministrator });
  if (bootstrap?.created === false) console.log(bootstrapIgnored);
  if (bootstrap?.created === true)
    console.log(`Created the administrator account ${config.bootstrapAdmin?.email}. Sign in with it.`);

  await runUntilStopped({
    log: parts.log,
    operations,
    async stop() {
      await app.stop();
      await parts.close();
    },
  });
  return 0;
}

const bootstrapIgnored =
  'BOOTSTRAP_ADMIN_EMAIL and BOOTSTRAP_ADMIN_PASSWORD were ignored: there is an administrator already. ' +
  'A new password: stop the server, then npm start -- admin reset-password EMAIL';

async function greet(
  config: Config,
  parts: OpenParts,
  { bound, administrator }: { bound: Bound; administrator: { hasAdministrator(): Promise<boolean> } },
): Promise<void> {
  const { version } = await import('./app.ts');
  const { setupLink } = await import('./commands.ts');
  const { unreachableContent } = await import('./host-rules.ts');
  const lines = [
    // Since the process began, which is what whoever waits for it counts.
    `Postern ${version} is ready (${Math.round(performance.now())} ms)`,
    `  web and API   ${config.uiUrl}`,
    ...listeningAt(config.uiUrl, bound).map((origin) => `  listens on    ${origin}`),
    `  reference     ${config.uiUrl}/api/v2/docs`,
    `  content hosts ${config.contentUrl}`,
    ...(unreachableContent(config) ? [contentWarning] : []),
    `  operations    http://${config.host}:${config.metricsPort}/readyz`,
    `  data          ${parts.description}`,
  ];
  if (!(await administrator.hasAdministrator())) {
    lines.push(
      '',
      'Create the first administrator with this one-time link (15 minutes):',
      `  ${setupLink(config)}`,
    );
  }
  console.log(lines.join('\n'));
}

const contentWarning =
  '                That is this machine alone: set SITES_CONTENT_URL to a host of its own, with a wildcard for its sites.';

type Bound = AddressInfo | string | null;

/** Where the web workload listens, when its public address does not say so: behind a proxy, or on port 0. */
export function listeningAt(uiUrl: string, bound: Bound): string[] {
  if (bound === null || typeof bound === 'string') return [];
  const { protocol, hostname, port } = new URL(uiUrl);
  const isOwn =
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    hostname.startsWith('127.');
  if (protocol === 'http:' && isOwn && Number(port || 80) === bound.port) return [];
  const host = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return [`http://${host}:${bound.port}`];
}
