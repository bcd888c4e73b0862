import type { Sql } from './sql.ts';

/** One factory for each store, by the name that the store has in `read` and in a transaction. */
export type StoreFactories = Readonly<Record<string, (sql: Sql) => unknown>>;

export type StoresOf<Factories extends StoreFactories> = {
  readonly [Name in keyof Factories]: ReturnType<Factories[Name]>;
};

/**
 * Gives a connection or a transaction its stores. Each is built when it is first named: a transaction names few of them. A
 * spread of the result finds no store: name each one.
 */
export function lazyStores<Factories extends StoreFactories>(
  factories: Factories,
): (sql: Sql) => StoresOf<Factories> {
  class Stores {
    readonly #sql: Sql;
    constructor(sql: Sql) {
      this.#sql = sql;
    }
    static {
      for (const [name, build] of Object.entries(factories))
        Object.defineProperty(this.prototype, name, {
          get(this: Stores) {
            const value = build(this.#sql);
            Object.defineProperty(this, name, { value });
            return value;
          },
        });
    }
  }
  // The compiler does not see the getters, one for each factory.
  return (sql) => new Stores(sql) as unknown as StoresOf<Factories>;
}
