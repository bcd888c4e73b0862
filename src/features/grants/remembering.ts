/** Keys. */
const mostKnown = 5_000;

/**
 * Reads each text of a key once: the parts of a page all find the same records. What does not read as one is not remembered.
 */
export function remembering<T>(
  read: (key: string, value: string) => T | undefined,
): (key: string, value: string) => T | undefined {
  const known = new Map<string, { readonly value: string; readonly record: T }>();
  return (key, value) => {
    const there = known.get(key);
    if (there?.value === value) return there.record;
    const record = read(key, value);
    if (record === undefined) return undefined;
    if (known.size >= mostKnown) known.clear();
    known.set(key, { value, record });
    return record;
  };
}
