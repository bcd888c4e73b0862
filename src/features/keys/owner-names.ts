type Names = Promise<ReadonlyMap<string, string>>;

/** Names of people and of service keys in one map: their ids never collide. */
export function ownerNames(read: {
  readonly users: { names(ids: readonly string[]): Names };
  readonly keys: { namesOf(ids: readonly string[]): Names };
}): (owners: readonly { readonly kind: 'user' | 'service_key'; readonly id: string }[]) => Names {
  return async (owners) => {
    const idsOf = (kind: 'user' | 'service_key') =>
      owners.filter((owner) => owner.kind === kind).map(({ id }) => id);
    const [people, keys] = [idsOf('user'), idsOf('service_key')];
    return new Map([
      ...(people.length === 0 ? [] : await read.users.names(people)),
      ...(keys.length === 0 ? [] : await read.keys.namesOf(keys)),
    ]);
  };
}
