import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { createApp } from '../../composition/app.ts';
import type { AppBackends } from '../../composition/app-settings.ts';
import { systemClock } from '../../core/clock.ts';
import { systemRandom } from '../../core/ids.ts';
import {
  breakableClock,
  breakablePool,
  breakableDirectory,
  breakableKv,
  breakableLimits,
  noFaults,
} from './drill-faults.ts';
import { productionCost } from '../../features/accounts/passwords.ts';
import { memorySource } from '../../features/rate-limit/rate-limit.ts';
import { fileBlobs } from '../../platform/blobs/file-blobs.ts';
import { openDatabase } from '../../platform/database/database.ts';
import { createEmbeddedFolder } from '../../platform/database/embedded-folder.ts';
import { embeddedDatabase } from '../../platform/database/embedded.ts';
import { migrate } from '../../platform/database/migrate.ts';
import { memoryKv } from '../../platform/kv/memory-kv.ts';
import { createLog } from '../../platform/log.ts';
import { gitIn } from '../../platform/git/git.ts';
import { createOutbound } from '../../platform/outbound.ts';
import { temporaryFilesIn } from '../../platform/temporary-files.ts';
import { listen } from '../../platform/listen.ts';

/**
 * The drill's own instance: the whole product on embedded backends in `folder`, on free loopback ports, with a fault
 * injector in front of each backend. It reads no settings, so it cannot touch an installation.
 */
export type DrillInstance = Awaited<ReturnType<typeof openDrillInstance>>;

/** `weaken`: replaces backends by ones that break their contract, to test that a drill detects it. */
export type Weaken = (backends: AppBackends) => AppBackends;

export async function openDrillInstance(folder: string, weaken: Weaken = (backends) => backends) {
  const faults = noFaults();
  const clock = breakableClock(systemClock);
  const dataDir = join(folder, 'db');
  await createEmbeddedFolder(dataDir);
  const embedded = embeddedDatabase({ dataDir });
  await embedded.start();
  const database = openDatabase(breakablePool(faults, embedded.pool));
  const closing = [() => database.close()];
  const close = async () => {
    for (const one of closing.toReversed()) await one();
  };
  try {
    await migrate(database);
    const { kv, lose } = breakableKv(faults, () => memoryKv({ clock }));
    const blobs = fileBlobs(join(folder, 'blobs'));
    const temporaryFiles = temporaryFilesIn(join(folder, 'uploads'));
    await blobs.prepare();
    await temporaryFiles.prepare();
    const [port, gatewayPort] = await freePorts();
    const uiUrl = `http://localhost:${port}`;
    const contentUrl = `http://sites.localhost:${gatewayPort}`;
    const secret = () => Buffer.from(systemRandom.bytes(32)).toString('base64url');
    const app = await createApp(
      {
        uiUrl,
        contentUrl,
        environmentsContentUrl: contentUrl,
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
        temporaryFiles,
        git: gitIn(join(folder, 'git'), {
          outbound: createOutbound({ allowsPrivate: false }),
          searchPath: '',
        }),
        clock,
        random: systemRandom,
        directory: (builtin) => breakableDirectory(faults, builtin),
        limitSource: breakableLimits(faults, memorySource({ clock })),
        log: createLog({ level: 'silent' }),
        // False, as with several processes: cached data must be confirmed before use.
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
    const { firstAdministrator } = app.services.identity;
    return { uiUrl, faults, clock, database, loseStore: lose, firstAdministrator, secret, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Two at the same time, so that they differ. */
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
