import type { Schemas } from '../../api/contract.ts';

/** Outcomes of a request with a key, in the order of the chart, from the bottom up. */
export const outcomes = [
  { name: 'allowed', label: 'Answered', color: 'var(--postern-chart-good)' },
  { name: 'denied', label: 'Refused', color: 'var(--postern-chart-bad)' },
  { name: 'limited', label: 'Rate limited', color: 'var(--postern-chart-warn)' },
  { name: 'failed', label: 'Failed', color: 'var(--postern-chart-grey)' },
  { name: 'dead', label: 'Inactive keys', color: 'var(--postern-chart-dark)' },
] as const;

export type Outcome = (typeof outcomes)[number]['name'];
export type Bar = { readonly at: number; readonly label: string } & Readonly<Record<Outcome, number>>;

const none = { allowed: 0, denied: 0, limited: 0, failed: 0, dead: 0 };
const hours = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const days = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** A bar for every period, also for those in which nothing happened. Days are the server's, in UTC. */
export function barsOf({ from, to, per, points, step }: Schemas['KeyUsage'] & { step: number }): Bar[] {
  const known = new Map(points.map((point) => [Date.parse(point.from), point.counts]));
  const bars: Bar[] = [];
  for (let at = Date.parse(from); at < Date.parse(to); at += step) {
    bars.push({ at, label: (per === 'day' ? days : hours).format(at), ...(known.get(at) ?? none) });
  }
  return bars;
}
