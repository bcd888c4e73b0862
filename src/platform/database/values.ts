/** How our values stand in SQL. */

/** A time of ours, milliseconds since the epoch, as PostgreSQL takes it. */
export function toDate(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}

/** And back. */
export function toMs(date: Date | null): number | null {
  return date === null ? null : date.getTime();
}

/** A pattern for `like` that finds what begins with exactly this text. */
export function startsWith(text: string): string {
  return `${escaped(text)}%`;
}

/** The same for what has it anywhere. */
export function containing(text: string): string {
  return `%${escaped(text)}%`;
}

function escaped(text: string): string {
  return text.replaceAll(/[\\%_]/g, '\\$&');
}
