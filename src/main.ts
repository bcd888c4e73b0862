import { readFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { ConfigError, type Config, readConfig } from './config.ts';
import { systemClock } from './core/clock.ts';
import { DataDirInUse } from './platform/data-dir.ts';
import type { OpenParts } from './parts.ts';

/**
 * The front door: reads what to do, starts it, stops it.
 *   postern                       web, gateway and worker in one process
 *   postern migrate               bring the database to the newest step
 *   postern admin login-link      a new one-time link for the first administrator
 *   postern keys import FILE      take key records of an older deployment
 *   postern audit verify [SEQ:HASH]  walk the audit chain; with a head that an earlier run printed, prove that nothing was cut off since
 */
const usage = `usage: postern [all | migrate | admin login-link | keys import FILE | audit verify [SEQ:HASH]]`;

const migrations = join(import.meta.dirname, '../migrations');

// Compiled code is kept beside the packages, a folder that is trusted like the code itself. It must be on before
// most of the program is loaded, so everything below is imported where it is needed. Without a place to write, Node
// goes on without it.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/postern'));

async function main(args: readonly string[]): Promise<number> {
  const command = args.join(' ');
  const config = readConfig();
  if (command === '' || command === 'all') return await serve(config);
  if (command === 'migrate') return await runMigrations(config);
  if (command === 'admin login-link') return await printLoginLink(config);
  if (args[0] === 'audit' && args[1] === 'verify' && args.length <= 3)
    return await runVerify(config, args[2]);
  if (args.length === 3 && args[0] === 'keys' && args[1] === 'import')
    return await runImport(config, args[2] ?? '');
  console.error(usage);
  return 2;
}

async function serve(config: Config): Promise<number> {
  const { openParts } = await import('./parts.ts');
  const opening = openParts(config, { isServer: true });
  // Whoever awaits it below sees a failure; until then it must not end the process.
  opening.catch(() => undefined);
  // The embedded database opens in its thread meanwhile.
  const { createApp, productionCost } = await import('./app.ts');
  const { createGateway } = await import('./surfaces/gateway/server.ts');
  const { createOperationsServer } = await import('./surfaces/web/operations.ts');
  const parts = await opening;
  await applyMigrations(parts);
  const app = await createApp({ ...config, passwordCost: productionCost, overloadDelayMs: 1_000 }, parts);
  await app.start();
  if (config.bootstrapAdmin) await app.doors.identity.firstAdministrator.ensure(config.bootstrapAdmin);

  let isStopping = false;
  const gateway = createGateway();
  const operations = createOperationsServer({
    registry: app.doors.metrics.registry,
    checks: { database: () => parts.database.ping(), kv: parts.pingKv },
    isStopping: () => isStopping,
  });
  await app.web.listen({ host: config.host, port: config.port });
  await listen(gateway, config.host, config.gatewayPort);
  await listen(operations, config.host, config.metricsPort);
  app.jobs.start();
  await greet(config, parts, app.doors.identity.firstAdministrator);

  const signal = await new Promise<string>((resolve) => {
    process.once('SIGTERM', () => resolve('SIGTERM'));
    process.once('SIGINT', () => resolve('SIGINT'));
  });
  isStopping = true;
  parts.log.info({ signal }, 'stopping');
  // Whatever hangs must not keep the process past its grace (contract 1: within 10 s).
  setTimeout(() => process.exit(1), 9_500).unref();
  await Promise.all([close(gateway), close(operations)]);
  await app.stop();
  await parts.close();
  return 0;
}

async function greet(
  config: Config,
  parts: OpenParts,
  administrator: { hasAdministrator(): Promise<boolean> },
): Promise<void> {
  const { version } = await import('./app.ts');
  const lines = [
    // Since the process began, which is what whoever waits for it counts.
    `Postern ${version} is ready (${Math.round(performance.now())} ms)`,
    `  web and API   ${config.uiUrl}`,
    `  reference     ${config.uiUrl}/api/v2/docs`,
    `  content hosts ${config.contentUrl}`,
    `  operations    http://${config.host}:${config.metricsPort}/readyz`,
    `  data          ${parts.description}`,
  ];
  if (!(await administrator.hasAdministrator())) {
    lines.push(
      '',
      'Create the first administrator with this one-time link (15 minutes):',
      `  ${await setupLink(config)}`,
    );
  }
  console.log(lines.join('\n'));
}

async function setupLink(config: Config): Promise<string> {
  const { mintSetupToken } = await import('./features/identity/identity.ts');
  return `${config.uiUrl}/setup#token=${mintSetupToken(config.sessionSecrets, systemClock)}`;
}

/** Works beside a running server: the link is signed, not stored, and shut once an administrator exists. */
async function printLoginLink(config: Config): Promise<number> {
  console.log(await setupLink(config));
  console.error('It works once, for 15 minutes, and only while there is no administrator.');
  return 0;
}

async function runMigrations(config: Config): Promise<number> {
  return await withParts(config, async (parts) => {
    const { applied } = await applyMigrations(parts);
    console.log(applied.length === 0 ? 'The database is up to date.' : `Applied ${applied.join(', ')}.`);
    return 0;
  });
}

async function runVerify(config: Config, head: string | undefined): Promise<number> {
  const anchor = head === undefined ? undefined : parseAnchor(head);
  if (anchor === null) {
    console.error('postern: a head looks like 123:<64 hexadecimal digits>, as an earlier run printed it.');
    return 2;
  }
  return await withParts(config, async (parts) => {
    await applyMigrations(parts);
    const { createApp, productionCost } = await import('./app.ts');
    const { formatTrailReport, verifyTrail } = await import('./features/audit/verify.ts');
    const app = await createApp({ ...config, passwordCost: productionCost }, parts);
    const report = await verifyTrail(app.doors.read.chain, anchor);
    console.log(formatTrailReport(report));
    return report.brokenAt === undefined ? 0 : 1;
  });
}

function parseAnchor(head: string): { seq: number; hash: string } | null {
  const match = /^(\d{1,15})[: ]([0-9a-f]{64})$/.exec(head);
  return match === null ? null : { seq: Number(match[1]), hash: match[2] ?? '' };
}

async function runImport(config: Config, file: string): Promise<number> {
  const lines = (await readFile(file, 'utf8')).split('\n');
  return await withParts(config, async (parts) => {
    await applyMigrations(parts);
    const { createApp, productionCost } = await import('./app.ts');
    const app = await createApp({ ...config, passwordCost: productionCost }, parts);
    await app.start();
    const result = await app.doors.importKeys(lines);
    if (result.kind === 'imported') {
      console.log(`Imported ${result.count} keys; ${result.alreadyThere} were there already.`);
      return 0;
    }
    for (const { line, problem } of result.problems) console.error(`${file}:${line}: ${problem}`);
    console.error('Nothing was imported. Mend these lines and run the command again.');
    return 1;
  });
}

async function applyMigrations({ database }: OpenParts): Promise<{ applied: string[] }> {
  const { migrate } = await import('./platform/database/migrate.ts');
  return await migrate(database, migrations);
}

async function withParts(config: Config, work: (parts: OpenParts) => Promise<number>): Promise<number> {
  const { openParts } = await import('./parts.ts');
  const parts = await openParts(config, { isServer: false });
  try {
    return await work(parts);
  } finally {
    await parts.close();
  }
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
  });
}

/** A mistake of the operator is told in words; anything else with its stack. */
function tell(error: unknown): void {
  if (error instanceof ConfigError) {
    console.error(
      `postern cannot start; ${error.mistakes.length} setting(s) need mending:\n${error.message}`,
    );
  } else if (error instanceof DataDirInUse || (error instanceof Error && error.name === 'DatabaseInUse')) {
    console.error(`postern: ${error.message}`);
  } else if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') {
    console.error(
      `postern: ${error.message}. Stop the other program, or choose another port with PORT, GATEWAY_PORT or METRICS_PORT.`,
    );
  } else {
    console.error('postern:', error);
  }
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    tell(error);
    process.exit(1);
  },
);
