import type { AddressInfo } from 'node:net';
import type { App } from '../composition/app.ts';
import { type AppBackends, type AppSettings, appSettingsOf } from '../composition/app-settings.ts';
import type { Config } from '../config/read.ts';
import type { Workload } from '../config/names.ts';
import { isLoopback } from '../core/loopback.ts';
import type { GrantKind } from '../features/grants/grants.ts';
import { listen } from '../platform/listen.ts';
import { version } from '../platform/version.ts';
import { greetBriefly, requirePorts, runWorkload } from './lifecycle.ts';
import { type OpenBackends, openBackends } from '../composition/backends/backends.ts';
import { databaseTrouble } from '../composition/backends/start-errors.ts';

/**
 * Runs all workloads in one process, or web or worker alone: opens the backends, builds the app and runs it. `limits`
 * and `replaced` are for the fuzzer: it changes more than a person does, and must not reach external servers.
 */
export async function serve(
  config: Config,
  workload: Exclude<Workload, 'gateway'> = 'all',
  limits: Pick<AppSettings, 'changesPerMinute'> = {},
  replaced: Pick<AppBackends, 'outboundFetch'> = {},
): Promise<number> {
  const loadApp = () => import('../composition/app.ts');
  // The key-value store has a quarter of a second to respond. On a busy processor, or with a pod's share of one, loading
  // the program takes longer, so it is loaded first.
  if (config.kvUrl !== null) await loadApp();
  const backends = await openBackends(config, {
    isServer: true,
    workload,
    beforeDatabase: () => requirePorts(config),
    // A failure is reported below, where the app is needed.
    onOpening: () => void loadApp().catch(() => undefined),
    onFirstStart: () => console.log(`postern: first start, creating the database in ${config.dataDir} …`),
  });
  const { createApp } = await loadApp();
  const { productionCost } = await import('../features/accounts/passwords.ts');
  const { warnOfHosts } = await import('../operations/doctor/host-rules.ts');
  if (workload !== 'worker') warnOfHosts(config, backends.log);
  const own = { ...limits, workload, passwordCost: productionCost, overloadDelayMs: 1_000 };
  const app = await createApp(appSettingsOf(config, own), { ...backends, ...replaced });
  const { firstAdministrator } = app.services.identity;
  return await runWorkload(config, backends, {
    metrics: app.services.metrics,
    // Every worker reports the same counts, so one of them is enough for an alert.
    ...(workload === 'web' ? {} : { work: app.countWork }),
    start: () => startOn(config, backends, app, workload),
    async listen() {
      if (workload !== 'worker') await app.web.listen({ host: config.host, port: config.port });
      const { kubernetes } = config.environments;
      if (workload !== 'worker' && kubernetes !== null)
        await app.files?.listen({ host: config.host, port: kubernetes.port });
      if (workload === 'all') await listen(app.gateway, config.host, config.gatewayPort);
    },
    greet: () =>
      workload === 'worker'
        ? greetBriefly(workload, config, backends)
        : greet(config, backends, { bound: app.web.server.address(), administrator: firstAdministrator }),
    stop: app.stop,
  });
}

/** May be called again until it succeeds. @throws Blamed, Unprepared or an error that waiting cannot resolve */
async function startOn(
  config: Config,
  backends: OpenBackends,
  app: App,
  workload: Exclude<Workload, 'gateway'>,
): Promise<void> {
  const { applyMigrations } = await import('../operations/commands.ts');
  try {
    await applyMigrations(config, backends);
    await app.start();
    const { firstAdministrator } = app.services.identity;
    const bootstrap =
      workload === 'worker' || config.bootstrapAdmin === null
        ? null
        : await firstAdministrator.ensure(config.bootstrapAdmin);
    if (bootstrap === 'ignored') console.log(bootstrapIgnored);
    if (bootstrap === 'created')
      console.log(`Created the administrator account ${config.bootstrapAdmin?.email}. Sign in with it.`);
  } catch (error) {
    throw databaseTrouble(error, { isMigratedByOthers: workload !== 'all' });
  }
  app.jobs.start();
}

const bootstrapIgnored =
  'BOOTSTRAP_ADMIN_EMAIL and BOOTSTRAP_ADMIN_PASSWORD were ignored: an administrator already exists. ' +
  'To set a new password, stop the server and run: npm start -- admin reset-password EMAIL';

async function greet(
  config: Config,
  backends: OpenBackends,
  { bound, administrator }: { bound: Bound; administrator: { hasAdministrator(): Promise<boolean> } },
): Promise<void> {
  const { setupLink } = await import('../operations/commands.ts');
  const { kindsOfContent, unreachableContent } = await import('../operations/doctor/host-rules.ts');
  const lines = [
    // Measured from the start of the process, as an operator would.
    `Postern ${version} is ready (${Math.round(performance.now())} ms)`,
    `  web and API   ${config.uiUrl}`,
    ...listeningAt(config.uiUrl, bound).map((origin) => `  listens on    ${origin}`),
    `  reference     ${config.uiUrl}/api/v2/docs`,
    ...kindsOfContent(config).flatMap((kind) => [
      `  content hosts ${config[kind.contentUrl]}`,
      ...(unreachableContent(config, kind) ? [contentWarning(kind)] : []),
    ]),
    `  operations    http://${config.host}:${config.metricsPort}/readyz`,
    `  data          ${backends.description}`,
    ...(backends.isolation ? [`  isolation     ${backends.isolation.message}`] : []),
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

const contentWarning = ({ contentSetting, noun }: GrantKind) =>
  `                This address works on this machine only: set ${contentSetting} to a separate host, with a wildcard for its ${noun}s.`;

type Bound = AddressInfo | string | null;

/** The addresses of the web listener, when the public address does not show them: behind a proxy, or on port 0. */
export function listeningAt(uiUrl: string, bound: Bound): string[] {
  if (bound === null || typeof bound === 'string') return [];
  const { protocol, hostname, port } = new URL(uiUrl);
  if (protocol === 'http:' && isLoopback(hostname) && Number(port || 80) === bound.port) return [];
  const host = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return [`http://${host}:${bound.port}`];
}
