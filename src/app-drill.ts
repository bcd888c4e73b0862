import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { type AppParts, createApp, productionCost } from './app.ts';
import { systemClock } from './core/clock.ts';
import { systemRandom } from './core/ids.ts';
import {
  breakableClock,
  breakableDialect,
  breakableDirectory,
  breakableKv,
  breakableLimits,
  noFaults,
} from './drill-faults.ts';
import { memorySource } from './features/ratelimit/ratelimit.ts';
import { fileBlobs } from './platform/blobs/file-blobs.ts';
import { openDatabase } from './platform/database/database.ts';
import { embeddedDatabase } from './platform/database/embedded.ts';
import { migrate } from './platform/database/migrate.ts';
import { memoryKv } from './platform/kv/memory-kv.ts';
import { createLog } from './platform/log.ts';
import { fileSpool } from './platform/spool.ts';
import { listen } from './running.ts';

/**
 * An instance of its own for the drill: the whole product on embedded parts in `folder`, on free ports of loopback, with
 * faults between it and each part. It reads no settings, so nothing of an installation can be in it.
 */
export type DrillInstance = Awaited<ReturnType<typeof openDrillInstance>>;

/** `weaken`: parts that do not keep their word, for the test that a drill finds them. */
export type Weaken = (parts: AppParts) => AppParts;

const migrations = join(import.meta.dirname, '../migrations');

export async function openDrillInstance(folder: string, weaken: Weaken = (parts) => parts) {
  const faults = noFaults();
  const clock = breakableClock(systemClock);
  const embedded = embeddedDatabase({ dataDir: join(folder, 'db') });
  await embedded.start();
  const database = openDatabase(breakableDialect(faults, embedded.dialect));
  const closing = [() => database.close()];
  const close = async () => {
    for (const one of closing.toReversed()) await one();
  };
  try {
    await migrate(database, migrations);
    const { kv, lose } = breakableKv(faults, () => memoryKv({ clock }));
    const blobs = fileBlobs(join(folder, 'blobs'));
    const spool = fileSpool(join(folder, 'uploads'));
    await blobs.prepare();
    await spool.prepare();
    const [port, gatewayPort] = await freePorts();
    const uiUrl = `http://localhost:${port}`;
    const secret = () => Buffer.from(systemRandom.bytes(32)).toString('base64url');
    const app = await createApp(
      {
        uiUrl,
        contentUrl: `http://sites.localhost:${gatewayPort}`,
        sessionSecrets: [secret()],
        encryptionKeys: [secret()],
        grantSecrets: [secret()],
        allowSharedApex: false,
        keyPrefix: 'app',
        trustedProxies: [],
        passwordCost: productionCost,
      },
      weaken({
        database,
        kv,
        blobs,
        spool,
        clock,
        random: systemRandom,
        directory: (builtin) => breakableDirectory(faults, builtin),
        limitSource: breakableLimits(faults, memorySource({ clock })),
        log: createLog({ level: 'silent' }),
        // As where there are several: what is remembered has to be vouched for.
        isOnlyProcess: false,
        serverTime: async () => clock.now(),
      }),
    );
    closing.push(async () => {
      Object.assign(faults, noFaults());
      await app.stop();
    });
    await app.start();
    await app.web.listen({ host: '127.0.0.1', port });
    await listen(app.gateway, '127.0.0.1', gatewayPort);
    app.jobs.start();
    const { firstAdministrator } = app.doors.identity;
    return { uiUrl, faults, clock, database, loseStore: lose, firstAdministrator, secret, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Two at a time, so that they differ. */
async function freePorts(): Promise<[number, number]> {
  const probes = [createServer(), createServer()];
  const ports: number[] = [];
  for (const probe of probes) {
    probe.listen(0, '127.0.0.1');
    await once(probe, 'listening');
    const address = probe.address();
    if (address === null || typeof address === 'string') throw new Error('A listener has no port.');
    ports.push(address.port);
  }
  for (const probe of probes) {
    probe.close();
    await once(probe, 'close');
  }
  const [first = 0, second = 0] = ports;
  return [first, second];
}
