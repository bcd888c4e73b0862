/** Formats times in the user's time zone and locale. Text within a sentence is in English. */
const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** Each unit, and the distance from which it is used: “in 36 hours” says more than “in 2 days”. */
const units = [
  ['year', 365 * day, 2 * 365 * day],
  ['month', 30 * day, 61 * day],
  ['day', day, 2 * day],
  ['hour', hour, hour],
  ['minute', minute, minute],
] as const;

const relative = new Intl.RelativeTimeFormat('en');
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const seconds = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });

/** “in 7 days”, “3 hours ago”. The same distance has the same text everywhere. Up to sixty days are shown as days. */
export function fromNow(at: number, now: number): string {
  const away = at - now;
  const unit = units.find(([, , from]) => Math.abs(away) >= from);
  if (unit !== undefined) return relative.format(Math.round(away / unit[1]), unit[0]);
  return 'just now';
}

/** The same for future moments, such as an expiry. For past events `fromNow` takes the next minute as “just now”: clocks lag. */
export function aheadFromNow(at: number, now: number): string {
  return at > now && at - now < minute ? 'in less than a minute' : fromNow(at, now);
}

export function exactly(at: number): string {
  return absolute.format(at);
}

export function toTheSecond(at: number): string {
  return seconds.format(at);
}

/** The time of day alone, to the second. */
export function clockTime(at: number): string {
  return clock.format(at);
}

/** How long something took: “0.4 s”, “12 s”, “3 min 5 s”, “2 h 4 min”. */
export function durationInWords(ms: number): string {
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`;
  const all = Math.round(ms / 1_000);
  if (all < 60) return `${all} s`;
  if (all < 3_600) return `${Math.floor(all / 60)} min ${all % 60} s`;
  return `${Math.floor(all / 3_600)} h ${Math.floor((all % 3_600) / 60)} min`;
}

export function hoursInWords(hours: number): string {
  const [count, unit] = hours % 24 === 0 ? [hours / 24, 'day'] : [hours, 'hour'];
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
