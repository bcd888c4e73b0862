/**
 * Whether a document allows more after a change than before: a boolean became true, a number rose, a list has a new entry,
 * or any other value changed. A change that only allows less needs no fresh sign-in, so that nothing delays it in an emergency.
 */
export function widens(before: unknown, after: unknown): boolean {
  if (typeof before === 'boolean' && typeof after === 'boolean') return after && !before;
  if (typeof before === 'number' && typeof after === 'number') return after > before;
  if (Array.isArray(before) && Array.isArray(after)) {
    const known = new Set(before.map((entry) => JSON.stringify(entry)));
    return after.some((entry) => !known.has(JSON.stringify(entry)));
  }
  if (isObject(before) && isObject(after))
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].some((field) =>
      widens(before[field], after[field]),
    );
  return before !== after;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
