/**
 * A stored document in the shape of this release, whose shape is that of its built-in default. While an update rolls, and
 * after one was taken back, the document in the database is of a release one newer or one older (decision 0028): a field
 * that this release does not know is left out, one that is missing is the default's. Everything else stays as it is
 * stored, for the document's own schema to judge: a wrong value is refused as ever. Lists are taken whole.
 *
 * So whoever changes a document with this release, which a newer one wrote, loses the fields that only that one knows;
 * they have their defaults there again. The versions before stay in the history.
 */
export function inShapeOf(initial: unknown, stored: unknown): unknown {
  if (!isObject(initial) || !isObject(stored)) return stored;
  const fields = Object.entries(initial).map(([field, ours]) => [
    field,
    Object.hasOwn(stored, field) ? inShapeOf(ours, stored[field]) : ours,
  ]);
  return Object.fromEntries(fields);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
