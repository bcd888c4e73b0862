import { LRUCache } from 'lru-cache';
import { second } from '../../core/clock.ts';
import { Connection } from '../../platform/http-client/connection.ts';
import { placeOf } from '../../platform/place.ts';

/**
 * Open connections to processes of Environments, a pool for each service. A pool belongs to the address that the worker
 * observed for the current start: a new address gets a new pool, and the idle connections of the old one are closed.
 */
export type ProcessPools = {
  /** An idle connection or a new one. Undefined: the service has as many in use as it may. `isNew`: never an idle one. */
  open(
    service: Service,
    how: { readonly isNew: boolean; readonly isUpgrade: boolean },
  ): Connection | undefined;
  /** The exchange on it is over, and it may carry another. `promisedMs`: how long the process keeps it; Infinity = unknown. */
  giveBack(service: Service, connection: Connection, promisedMs: number): void;
  close(): void;
};

type Service = { readonly name: string; readonly address: string };

/** Connections to one service, at most: idle ones, and ones in use, WebSockets included. */
const maxIdle = 256;
const maxBusy = 4_096;
const idleMs = 30 * second;
/** A process closes an idle connection when its time is over. The next request must not be on its way then. */
const marginMs = second;
const maxServices = 2_000;

type Pool = { readonly address: string; readonly idle: Connection[]; open: number };

export function createProcessPools(limits = { busy: maxBusy }): ProcessPools {
  const pools = new LRUCache<string, Pool>({
    max: maxServices,
    // Running requests keep their connections.
    dispose: ({ idle }) => {
      for (const connection of idle.splice(0)) connection.destroy();
    },
  });

  function poolOf({ name, address }: Service): Pool {
    const known = pools.get(name);
    if (known?.address === address) return known;
    const pool = { address, idle: [], open: 0 };
    pools.set(name, pool);
    return pool;
  }

  return {
    open(service, { isNew, isUpgrade }) {
      const pool = poolOf(service);
      while (!isNew && !isUpgrade) {
        const idle = pool.idle.pop();
        if (idle === undefined) break;
        if (idle.isUsable) return idle;
      }
      if (pool.open - pool.idle.length >= limits.busy) return undefined;
      const place = placeOf(service.address);
      pool.open += 1;
      const connection = new Connection(place, { isUpgrade }, () => {
        pool.open -= 1;
        const index = pool.idle.indexOf(connection);
        if (index >= 0) pool.idle.splice(index, 1);
      });
      return connection;
    },
    giveBack(service, connection, promisedMs) {
      const pool = pools.get(service.name);
      const ms = Math.min(idleMs, promisedMs - marginMs);
      if (pool?.address !== service.address || pool.idle.length >= maxIdle || ms <= 0)
        return connection.destroy();
      connection.keepIdle(ms);
      pool.idle.push(connection);
    },
    close: () => pools.clear(),
  };
}
