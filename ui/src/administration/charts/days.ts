/** Labels of bars. Buckets are whole hours and days in UTC, so labels are in UTC. */
const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' });
const hour = new Intl.DateTimeFormat(undefined, {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  timeZone: 'UTC',
});

const stepMs = { hour: 3_600_000, day: 86_400_000 } as const;
export type Per = keyof typeof stepMs;

export function labelOf(at: number, per: Per): string {
  return (per === 'day' ? day : hour).format(at);
}

/** Every bucket of a range, including empty ones. */
export function bucketsOf(from: string, to: string, per: Per): number[] {
  const step = stepMs[per];
  const first = Math.floor(Date.parse(from) / step) * step;
  const count = Math.max(0, Math.ceil((Date.parse(to) - first) / step));
  return Array.from({ length: count }, (_, at) => first + at * step);
}
