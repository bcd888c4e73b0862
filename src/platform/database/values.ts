/** Conversions between values of the program and SQL. */

/** Converts milliseconds since the epoch to PostgreSQL's type. */
export function toDate(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}

/** A `like` pattern that matches this exact text anywhere. */
export function containing(text: string): string {
  return `%${escaped(text)}%`;
}

/**
 * The `like` pattern for a search in names, in lower case. With three or more letters or digits in a row it matches
 * anywhere, because the trigram indexes of the migration 0011 can find it. A shorter text would need a scan of
 * every name, so it matches only the beginning.
 */
export function searched(text: string): string {
  const lower = text.toLowerCase();
  return /[\p{L}\p{N}]{3}/u.test(lower) ? containing(lower) : `${escaped(lower)}%`;
}

function escaped(text: string): string {
  return text.replaceAll(/[\\%_]/g, '\\$&');
}
