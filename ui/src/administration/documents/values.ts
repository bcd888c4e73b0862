/** Configuration documents as trees of settings. A list is one setting: its order and length are its value. */
export type Tree = Readonly<Record<string, unknown>>;

export type Difference = { readonly path: string; readonly before: unknown; readonly after: unknown };

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function at(tree: Tree, path: string): unknown {
  let value: unknown = tree;
  for (const part of path.split('.')) value = isTree(value) ? value[part] : undefined;
  return value;
}

export function withAt(tree: Tree, path: string, value: unknown): Tree {
  const [first = '', ...rest] = path.split('.');
  if (rest.length === 0) return { ...tree, [first]: value };
  const inner = tree[first];
  return { ...tree, [first]: withAt(isTree(inner) ? inner : {}, rest.join('.'), value) };
}

function pathsOf(tree: Tree, above = ''): string[] {
  return Object.entries(tree).flatMap(([name, value]) =>
    isTree(value) ? pathsOf(value, `${above}${name}.`) : [`${above}${name}`],
  );
}

export function differences(before: Tree, after: Tree): Difference[] {
  const paths = new Set([...pathsOf(before), ...pathsOf(after)]);
  return [...paths]
    .map((path) => ({ path, before: at(before, path), after: at(after, path) }))
    .filter(({ before, after }) => !sameValue(before, after));
}

export function sameValue(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Applies my changes to what someone else saved meanwhile. Where both changed a setting, mine wins and is `contested`. */
export function rebased(base: Tree, mine: Tree, theirs: Tree): { tree: Tree; contested: string[] } {
  const changed = new Set(differences(base, theirs).map(({ path }) => path));
  let tree = theirs;
  const contested: string[] = [];
  for (const { path, after } of differences(base, mine)) {
    if (changed.has(path) && !sameValue(at(theirs, path), after)) contested.push(path);
    tree = withAt(tree, path, after);
  }
  return { tree, contested };
}
