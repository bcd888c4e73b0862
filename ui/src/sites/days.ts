/** A moment's day in the reader's own time zone, `2026-11-22`, as calendars want it. */
export function dayOf(at: number): string {
  const date = new Date(at);
  return [date.getFullYear(), date.getMonth() + 1, date.getDate()]
    .map((part) => String(part).padStart(2, '0'))
    .join('-');
}
