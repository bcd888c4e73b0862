import { AppError } from '../../../src/core/errors.ts';
import type { LimitSource } from '../../../src/features/rate-limit/rate-limit.ts';
import type { Database } from '../../../src/platform/database/database.ts';

/** Engines that can be taken away and given back in the middle of a test. */
export type Switch = { isCut: boolean };

export function fallibleSource(source: LimitSource, outage: Switch): LimitSource {
  // Fails like redis-source.ts: after a while, with the code of an unavailable store.
  const guarded =
    <A extends unknown[], T>(work: (...args: A) => T | Promise<T>) =>
    async (...args: A): Promise<T> => {
      if (outage.isCut) throw new AppError('store_unavailable');
      return await work(...args);
    };
  return {
    spend: guarded(source.spend),
    peek: guarded(source.peek),
    setStamp: guarded(source.setStamp),
  };
}

export function fallibleDatabase(database: Database, outage: Switch): Database {
  const check = () => {
    if (outage.isCut) throw new AppError('store_unavailable');
  };
  return {
    ...database,
    sql: {
      run(...statement) {
        check();
        return database.sql.run(...statement);
      },
    },
    async tx(work) {
      check();
      return await database.tx(work);
    },
  };
}
