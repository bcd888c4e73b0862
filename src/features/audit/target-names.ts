type Names = Promise<ReadonlyMap<string, string>>;

/** Names of the targets of events. Without sites: only their owners may disclose the names. */
export function targetNames(read: {
  readonly users: { names(ids: readonly string[]): Names };
  readonly keys: { namesOf(ids: readonly string[]): Names };
}): (targets: readonly { readonly kind: string; readonly id: string }[]) => Names {
  return async (targets) => {
    const idsOf = (wanted: string) => [
      ...new Set(targets.filter(({ kind }) => kind === wanted).map(({ id }) => id)),
    ];
    const [people, keys] = [idsOf('user'), idsOf('api_key')];
    return new Map([
      ...(people.length === 0 ? [] : await read.users.names(people)),
      ...(keys.length === 0 ? [] : await read.keys.namesOf(keys)),
    ]);
  };
}
