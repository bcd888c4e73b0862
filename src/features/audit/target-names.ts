type Names = Promise<ReadonlyMap<string, string>>;

/**
 * Names of people and keys in one map: their ids never collide. Without names of other targets of events, such as sites:
 * only their owners may disclose them.
 */
export function namesOfTargets(read: {
  readonly users: { names(ids: readonly string[]): Names };
  readonly keys: { namesOf(ids: readonly string[]): Names };
}): (targets: readonly { readonly kind: string; readonly id: string }[]) => Names {
  return async (targets) => {
    const idsOf = (...kinds: string[]) => [
      ...new Set(targets.filter(({ kind }) => kinds.includes(kind)).map(({ id }) => id)),
    ];
    // A key is the target of an event, or the owner of something.
    const [people, keys] = [idsOf('user'), idsOf('api_key', 'service_key')];
    return new Map([
      ...(people.length === 0 ? [] : await read.users.names(people)),
      ...(keys.length === 0 ? [] : await read.keys.namesOf(keys)),
    ]);
  };
}
