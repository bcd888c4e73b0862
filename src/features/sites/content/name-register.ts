/** Finds names that no tree of files can hold together: the same name twice, and a file with the name of a folder. */
export type NameRegister = {
  /** Adds an entry. Returns why it conflicts with earlier ones, or undefined when it was added. */
  add(kind: 'file' | 'directory', path: string): string | undefined;
};

/**
 * A node in the tree of names. A chain of folders without a fork is one node, so a name takes memory for its own
 * length, however many folders it names.
 */
type Place = {
  readonly kind: 'file' | 'directory';
  /** Relative to the parent node: one or more segments. */
  spelling: string;
  /** By the first segment of each child; undefined while there are none. */
  below: Map<string, Place> | undefined;
};

const maxLatest = 1_000;

export function createNameRegister(): NameRegister {
  const top: Place = { kind: 'directory', spelling: '', below: undefined };

  /** Recently used folders, with a slash: most files lie in one of them. */
  const latest = new Map<string, Place>();

  return {
    add(kind, path) {
      const name = path.lastIndexOf('/') + 1;
      const folder = latest.get(path.slice(0, name));
      let place = folder ?? top;
      let ours = folder === undefined ? path.split('/') : [path.slice(name)];
      for (;;) {
        const next = place.below?.get(ours[0] ?? '');
        if (next === undefined) {
          put(place, { kind, spelling: ours.join('/'), below: undefined });
          if (latest.size >= maxLatest) latest.clear();
          if (ours.length === 1) latest.set(path.slice(0, name), place);
          return undefined;
        }
        const theirs = next.spelling.split('/');
        const shared = sharedBy(ours, theirs);
        const there = { kind: next.kind, shared, isWhole: shared === theirs.length };
        const problem = clashOf(there, { kind, path, rest: ours });
        if (problem !== undefined || shared === ours.length) return problem;
        ours = ours.slice(shared);
        place = there.isWhole ? next : forkAt(place, next, theirs.slice(0, shared));
      }
    },
  };
}

/** The number of leading segments that are equal. */
function sharedBy(ours: readonly string[], theirs: readonly string[]): number {
  const differs = ours.findIndex((one, at) => one !== theirs[at]);
  return differs < 0 ? ours.length : differs;
}

/** Checks the shared segments for a clash: `rest` is the part of the entry's path below the nodes already passed. */
function clashOf(
  there: { readonly kind: Place['kind']; readonly shared: number; readonly isWhole: boolean },
  { kind, path, rest }: { kind: Place['kind']; path: string; rest: readonly string[] },
): string | undefined {
  const passed = path.split('/').slice(0, -rest.length);
  const last = there.shared - 1;
  // Only the last segment of each can be a file.
  const isFolder = last < rest.length - 1;
  const problem = problemOfBoth(isFolder ? 'directory' : kind, there.isWhole ? there.kind : 'directory');
  if (problem === undefined || !isFolder) return problem;
  return `its folder ${[...passed, ...rest.slice(0, there.shared)].join('/')} ${problem}`;
}

function problemOfBoth(kind: Place['kind'], earlier: Place['kind']): string | undefined {
  if (kind !== earlier) return 'is both a file and a folder; rename one of them';
  return kind === 'file' ? 'appears twice in the upload' : undefined;
}

function put(above: Place, place: Place): void {
  above.below ??= new Map();
  above.below.set(place.spelling.split('/', 1)[0] ?? '', place);
}

/** Splits `place`: its shared leading folders become a separate node between it and its parent. */
function forkAt(above: Place, place: Place, shared: readonly string[]): Place {
  const fork: Place = { kind: 'directory', spelling: shared.join('/'), below: undefined };
  put(above, fork);
  place.spelling = place.spelling.slice(fork.spelling.length + 1);
  put(fork, place);
  return fork;
}
