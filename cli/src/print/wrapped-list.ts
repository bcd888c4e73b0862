/** A list that is the only field of the data, or the only one besides a text: prints its items as rows, like any other list. */
export function wrappedList(
  data: unknown,
): { readonly rows: readonly object[]; readonly columns: readonly string[] } | undefined {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return undefined;
  const [list, ...others]: unknown[] = Object.values(data);
  if (!Array.isArray(list) || others.length > 1) return undefined;
  if (others.length === 1 && (list.length === 0 || typeof others[0] === 'object')) return undefined;
  const rows: readonly unknown[] = list;
  return rows.every(isObject) ? { rows, columns: plainFieldsOf(rows) } : undefined;
}

/** Fields that hold one value in every item. */
function plainFieldsOf(rows: readonly object[]): string[] {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return names.filter((name) => !rows.some((row) => isObject(Reflect.get(row, name))));
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
