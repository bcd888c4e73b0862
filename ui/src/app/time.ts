/** Moments in the reader's own language and time zone. */
const units = [
  ['year', 31_536_000_000],
  ['month', 2_592_000_000],
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

/** “in 7 days”, “3 hours ago”; what is less than a minute away is “now”. */
export function fromNow(at: number, now: number): string {
  const away = at - now;
  const unit = units.find(([, ms]) => Math.abs(away) >= ms);
  return unit === undefined
    ? relative.format(0, 'second')
    : relative.format(Math.round(away / unit[1]), unit[0]);
}

export function exactly(at: number): string {
  return absolute.format(at);
}

export function hoursInWords(hours: number): string {
  const [count, unit] = hours % 24 === 0 ? [hours / 24, 'day'] : [hours, 'hour'];
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
