import { createHash } from 'node:crypto';
import { mac } from '../../../platform/encryption.ts';
import { createFairQueue } from '../../../platform/fair-queue.ts';
import type { Address, DesiredDatabase, EngineDatabases } from '../../engine/engine.ts';
import type { DatabaseAddress } from './databases.ts';
import { createMaking, type WantedDatabase } from './making.ts';
import { databaseNameOf, passwordOf } from './names.ts';

/**
 * Databases that the engine runs as services of their Environment and removes with it. Passwords are derived from names and a
 * key, as on a server. The caller applies them.
 */
export type DatabasesOfEngine = {
  readonly kind: 'engine';
  /**
   * Whether the database exists. False: it is being created; call again, immediately after `onSettled`. An existing database
   * stays unchanged, even if the seed changed. @throws AppError config_invalid when the seed cannot be used; EngineUnavailable;
   * errors of `read`
   */
  ensure(wanted: WantedDatabase & Pick<DesiredDatabase, 'memoryBytes'>): Promise<boolean>;
  /** The database as the engine runs it after its creation. */
  desired(
    environmentId: string,
    wanted: Pick<DesiredDatabase, 'service' | 'memoryBytes' | 'logBytes' | 'isAsleep'>,
  ): DesiredDatabase;
  /** Connection of services to a ready database at this address. */
  addressOf(environmentId: string, service: string, address: Address): DatabaseAddress;
};

const atOnce = { width: 2, perSender: 1, queue: 1_000 };
/** Login of PGlite. */
const login = 'postgres';

export function databasesOfEngine(deps: {
  readonly engine: EngineDatabases;
  readonly encryptionKey: string;
  /** Called when background work for this Environment has ended. */
  readonly onSettled: (environmentId: string) => void;
}): DatabasesOfEngine {
  const { engine } = deps;
  const key = mac(deps.encryptionKey, 'environment-databases', '');
  const making = createMaking({ turns: createFairQueue(atOnce), onSettled: deps.onSettled });
  const passwordFor = (environmentId: string, service: string) =>
    passwordOf(databaseNameOf(environmentId, service), key);

  return {
    kind: 'engine',

    async ensure(wanted) {
      const { environmentId, service, seed, memoryBytes } = wanted;
      const name = databaseNameOf(environmentId, service);
      if (making.isUnderWay(name, seed)) return false;
      if (await engine.isMade(environmentId, service)) return true;
      making.begin(name, wanted, async () => {
        const text = await seed?.read();
        const found = seed === null || text === undefined ? null : { path: seed.path, text };
        await engine.make({ environmentId, service, seed: found, memoryBytes });
      });
      return false;
    },

    desired(environmentId, wanted) {
      const whole = { ...wanted, password: passwordFor(environmentId, wanted.service) };
      const { service, password, memoryBytes } = whole;
      const text = JSON.stringify([service, password, memoryBytes]);
      return { ...whole, revision: createHash('sha256').update(text).digest('hex').slice(0, 32) };
    },

    addressOf(environmentId, service, { host, port }) {
      const password = passwordFor(environmentId, service);
      return { host, port, password, url: `postgresql://${login}:${password}@${host}:${port}/${login}` };
    },
  };
}
