import { EngineUnavailable } from '../contract.ts';
import type { Cluster, Kind, Objects } from './cluster.ts';

/**
 * Recent state of the namespace. A watch reports changes, and a list every 30 s replaces everything, so that a silent
 * watch does no harm.
 */
export type View = {
  /** Resolves after the first list of each kind. If Kubernetes is unavailable, all() throws until a later list succeeds. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** @throws EngineUnavailable when the state is too old to be trusted */
  all<K extends ViewedKind>(kind: K): readonly Objects[K][];
  /** Resolves at the next change. */
  changed(): Promise<void>;
};

export type ViewedKind = Extract<Kind, 'pods' | 'deployments' | 'services' | 'jobs' | 'events'>;

const kinds: readonly ViewedKind[] = ['pods', 'deployments', 'services', 'jobs', 'events'];
/** Interval between lists, and between the end of a watch and the next list, in ms. */
const [listMs, pauseMs] = [30_000, 1_000];
/** Maximum age of the state, in ms. */
const staleMs = 120_000;

export function createView({
  cluster,
  now,
  onDefect,
}: {
  readonly cluster: Pick<Cluster, 'list' | 'watch'>;
  /** Current time in ms. */
  readonly now: () => number;
  readonly onDefect: (error: unknown) => void;
}): View {
  const stopping = new AbortController();
  const found = new Map<ViewedKind, Map<string, Objects[ViewedKind]>>();
  const listedAt = new Map<ViewedKind, number>();
  let problem: EngineUnavailable | undefined;
  let change = Promise.withResolvers<void>();
  let following: Promise<unknown> | undefined;

  function announce(): void {
    change.resolve();
    change = Promise.withResolvers<void>();
  }

  async function list(kind: ViewedKind): Promise<string> {
    const { items, version } = await cluster.list(kind);
    found.set(kind, new Map(items.map((one) => [one.metadata?.uid ?? '', one])));
    listedAt.set(kind, now());
    announce();
    return version;
  }

  async function watch(kind: ViewedKind, version: string): Promise<void> {
    const due = new AbortController();
    const timer = setTimeout(() => due.abort(), listMs);
    try {
      const signal = AbortSignal.any([due.signal, stopping.signal]);
      await cluster.watch(kind, version, signal, (type, object) => {
        const uid = object.metadata?.uid ?? '';
        if (type === 'DELETED') found.get(kind)?.delete(uid);
        else found.get(kind)?.set(uid, object);
        announce();
      });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Returns the version of the list. Undefined: the kind cannot be listed now. */
  async function tryList(kind: ViewedKind): Promise<string | undefined> {
    try {
      return await list(kind);
    } catch (error) {
      noteProblem(error);
      return undefined;
    }
  }

  function noteProblem(error: unknown): void {
    if (error instanceof EngineUnavailable) problem = error;
    else onDefect(error);
  }

  async function pause(): Promise<void> {
    if (stopping.signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, pauseMs);
    const end = () => resolve();
    stopping.signal.addEventListener('abort', end, { once: true });
    await promise;
    clearTimeout(timer);
    stopping.signal.removeEventListener('abort', end);
  }

  async function follow(kind: ViewedKind, firstVersion: string | undefined): Promise<void> {
    let version = firstVersion;
    while (!stopping.signal.aborted) {
      if (version !== undefined) await watch(kind, version).catch(noteProblem);
      version = stopping.signal.aborted ? undefined : await tryList(kind);
      await pause();
    }
  }

  return {
    async start() {
      const versions = await Promise.all(kinds.map(tryList));
      following = Promise.all(kinds.map((kind, at) => follow(kind, versions[at])));
    },
    async stop() {
      stopping.abort();
      await following;
    },
    all(kind) {
      if (now() - (listedAt.get(kind) ?? Number.NEGATIVE_INFINITY) > staleMs)
        throw new EngineUnavailable(problem?.message ?? 'Kubernetes does not answer.', { cause: problem });
      // list() and watch() put objects of this kind there.
      return [...(found.get(kind)?.values() ?? [])] as Objects[typeof kind][];
    },
    changed: () => change.promise,
  };
}
