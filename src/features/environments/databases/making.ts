import type { FairQueue } from '../../../platform/fair-queue.ts';

export type WantedDatabase = {
  readonly environmentId: string;
  readonly service: string;
  readonly repositoryId: string;
  /** Null: the database is empty. */
  readonly seed: Seed | null;
};

export type Seed = {
  readonly path: string;
  /** Commit of the file. */
  readonly sha: string;
  readonly read: () => Promise<string>;
};

/** Creates databases in the background, so that no deploy blocks a worker while a seed runs. */
export type Making = {
  /** Whether the database is being created. @throws its error, once, if the same commit of the seed failed */
  isUnderWay(name: string, seed: Seed | null): boolean;
  /** `make` calls `onBegin` before it creates anything. */
  begin(
    name: string,
    wanted: WantedDatabase,
    make: (signal: AbortSignal, onBegin: () => void) => Promise<void>,
  ): void;
  /** Aborts databases whose names have this prefix. Waits for those whose creation has begun. */
  end(prefix: string): Promise<void>;
};

type UnderWay = {
  readonly sha: string | null;
  readonly abort: AbortController;
  /** False: it waits for its turn and has created nothing. */
  hasBegun: boolean;
  readonly work: Promise<void>;
  /** Undefined: the creation has not ended. */
  outcome: 'made' | { readonly error: unknown } | undefined;
};

export function createMaking(deps: {
  /** Repositories take turns, so that slow seeds of one do not delay the others. */
  readonly turns: FairQueue;
  /** Called when background work for this Environment has ended. */
  readonly onSettled: (environmentId: string) => void;
}): Making {
  const underWay = new Map<string, UnderWay>();
  return {
    isUnderWay(name, seed) {
      const known = underWay.get(name);
      if (known === undefined) return false;
      const { outcome, sha } = known;
      if (outcome === undefined) return true;
      underWay.delete(name);
      // A failure of another commit says nothing about this one.
      if (outcome !== 'made' && sha === (seed?.sha ?? null)) throw outcome.error;
      return false;
    },

    begin(name, { environmentId, repositoryId, seed }, make) {
      const abort = new AbortController();
      const one: UnderWay = {
        sha: seed?.sha ?? null,
        abort,
        hasBegun: false,
        outcome: undefined,
        work: deps
          .turns(repositoryId, () => make(abort.signal, () => (one.hasBegun = true)))
          .then(
            () => {
              one.outcome = 'made';
            },
            (error: unknown) => {
              one.outcome = { error };
            },
          ),
      };
      underWay.set(name, one);
      void one.work.then(() => deps.onSettled(environmentId));
    },

    async end(prefix) {
      const own = [...underWay].filter(([name]) => name.startsWith(prefix));
      for (const [, { abort }] of own) abort.abort();
      // Aborted work that still waits for its turn creates nothing.
      await Promise.all(own.filter(([, { hasBegun }]) => hasBegun).map(([, { work }]) => work));
      for (const [name] of own) underWay.delete(name);
    },
  };
}
