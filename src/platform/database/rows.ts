/**
 * How both drivers return a result. Columns have the names of the program (`created_at` is `createdAt`), points in time
 * are milliseconds since the epoch, and a `bigint` is a number: no store needs a second form of its rows. The keys inside a
 * `jsonb` value stay.
 */

/** PostgreSQL's numbers of its types (`pg_type.oid`). */
const bigint = 20;
export const timestamptz = 1184;

/** They read the text that PostgreSQL writes. */
export const parsers: Readonly<Record<number, (text: string) => number>> = {
  // The largest are sizes and times, far below 2^53.
  [bigint]: Number,
  [timestamptz]: timeOf,
};

/** @throws Error for an infinite time, and for the form of another `DateStyle`: a wrong time could keep a key alive */
function timeOf(text: string): number {
  const time = /^\d{4,6}-/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) throw new Error(`PostgreSQL returned a time that is not in ISO form: ${text}`);
  return time;
}

/** @returns the name in the program */
export function nameOf(column: string): string {
  return column.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

type Shape = { readonly names: readonly string[]; readonly empty: Readonly<Record<string, unknown>> };

/**
 * For each list of columns, its names and a row without values. Naming 24 columns takes 13 µs, and a copy of a whole object is
 * four times as fast as adding keys to an empty one. The program has some hundred lists.
 */
const shapes = new Map<string, Shape>();

function shapeOf(columns: readonly string[]): Shape {
  const list = columns.join();
  const known = shapes.get(list);
  if (known !== undefined) return known;
  const names = columns.map(nameOf);
  const shape = { names, empty: Object.fromEntries(names.map((name) => [name, null])) };
  shapes.set(list, shape);
  return shape;
}

/** @param values one list for each row, in the order of `columns` */
export function rowsOf(columns: readonly string[], values: readonly (readonly unknown[])[]): unknown[] {
  const { names, empty } = shapeOf(columns);
  return values.map((row) => {
    const filled: Record<string, unknown> = { ...empty };
    for (let at = 0; at < names.length; at++) filled[names[at] ?? ''] = row[at];
    return filled;
  });
}
