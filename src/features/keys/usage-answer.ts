import { timestamp } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { keptMs, periodMs, type UsagePeriod, type UsagePoint } from './usage.ts';

/** The query and the answer of a usage request, for one key or for all keys. */
export type UsageAsked = {
  readonly per: UsagePeriod;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
};

export async function usageAnswer(
  { per, from, to }: UsageAsked,
  now: number,
  read: (per: UsagePeriod, from: number, to: number) => Promise<UsagePoint[]>,
) {
  const range = usageRange(per, from, to, now);
  const points = await read(per, range.from, range.to);
  return {
    per,
    from: timestamp(range.from),
    to: timestamp(range.to),
    total: sum(points),
    points: points.map((point) => ({ from: timestamp(point.from), counts: point.counts })),
  };
}

function usageRange(per: UsagePeriod, from: string | undefined, to: string | undefined, now: number) {
  const step = periodMs[per];
  const end = to === undefined ? now - (now % step) + step : Date.parse(to);
  const start = from === undefined ? end - 60 * step : Date.parse(from);
  if (!(start < end)) throw new AppError('invalid_query', { message: 'from: must be before to' });
  if (end - start > keptMs[per]) {
    throw new AppError('invalid_query', {
      message: `from: must be at most ${keptMs[per] / 86_400_000} days before to when per is ${per}`,
    });
  }
  return { from: start, to: end };
}

function sum(points: readonly UsagePoint[]): UsagePoint['counts'] {
  const total = { allowed: 0, denied: 0, limited: 0, failed: 0, dead: 0 };
  for (const { counts } of points) {
    total.allowed += counts.allowed;
    total.denied += counts.denied;
    total.limited += counts.limited;
    total.failed += counts.failed;
    total.dead += counts.dead;
  }
  return total;
}
