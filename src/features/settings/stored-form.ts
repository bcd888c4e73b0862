/**
 * Converts a stored document to the shape of this release, which is the shape of its built-in default. During a rolling
 * update, and after a rollback, the next or the previous release may have written the document (decision 0028). Fields
 * that this release does not know are left out; missing fields get the default. Everything else stays as stored, for the
 * document's own schema to validate: a wrong value is still refused. Lists are taken whole.
 *
 * So when this release changes a document that a newer release wrote, the fields that only the newer one knows are lost,
 * and have their defaults there again. The earlier versions stay in the history.
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
