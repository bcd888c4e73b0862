import { createApp } from './app.ts';
import { systemClock } from '../core/clock.ts';
import { systemRandom } from '../core/ids.ts';
import { memorySource } from '../features/rate-limit/rate-limit.ts';
import { fileBlobs } from '../platform/blobs/file-blobs.ts';
import { openDatabase } from '../platform/database/database.ts';
import { embeddedDatabase } from '../platform/database/embedded.ts';
import { gitIn } from '../platform/git/git.ts';
import type { Route } from '../platform/http.ts';
import { memoryKv } from '../platform/kv/memory-kv.ts';
import type { Log } from '../platform/log.ts';
import { createOutbound } from '../platform/outbound.ts';
import { temporaryFilesIn } from '../platform/temporary-files.ts';

/** The routes without any backends, for the generated references. */
export async function allRoutes(): Promise<readonly Route[]> {
  const database = openDatabase(embeddedDatabase({}).pool);
  const silent: Log = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: () => undefined,
  };
  const app = await createApp(
    {
      uiUrl: 'http://localhost:3000',
      contentUrl: 'http://sites.localhost:3001',
      environmentsContentUrl: 'http://sites.localhost:3001',
      grantSecrets: ['only for listing routes; signs nothing'],
      allowSharedApex: false,
      keyPrefix: 'app',
      trustedProxies: [],
      sessionSecrets: ['only for listing routes; signs nothing'],
      encryptionKeys: ['only for listing routes; encrypts nothing'],
      passwordCost: { memoryKib: 8, passes: 1 },
    },
    {
      database,
      limitSource: memorySource({ clock: systemClock }),
      kv: memoryKv({ clock: systemClock }),
      blobs: fileBlobs('unused'),
      temporaryFiles: temporaryFilesIn('unused'),
      git: gitIn('unused', { outbound: createOutbound({ allowsPrivate: false }), searchPath: '' }),
      clock: systemClock,
      random: systemRandom,
      log: silent,
      isOnlyProcess: true,
    },
  );
  return app.routes;
}
