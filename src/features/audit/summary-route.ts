import { z } from 'zod';
import { administratorSession } from '../../core/authorize.ts';
import { type Clock, day, hour, timestamp } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { timestampSchema } from '../../platform/schemas.ts';
import type { CountStore } from './count-store.ts';

/** `GET /audit/summary`: counts of events over time, for charts. */
const stepMs = { hour, day };
const maxMs = { hour: 32 * day, day: 400 * day };

const summaryQuery = z.strictObject({
  per: z.enum(['hour', 'day']).default('day'),
  from: z.iso.datetime({ offset: true }).optional(),
  to: z.iso.datetime({ offset: true }).optional(),
});

const summarySchema = z
  .strictObject({
    per: z.enum(['hour', 'day']),
    from: timestampSchema,
    to: timestampSchema,
    counts: z.array(
      z.strictObject({
        from: timestampSchema.describe('The start of the hour or day, in UTC'),
        event: z.string(),
        outcome: z.enum(['success', 'denied', 'failure']),
        count: z.number().int(),
      }),
    ),
  })
  .meta({ id: 'AuditSummary' });

export function summaryRoute({ counts, clock }: { counts: CountStore; clock: Clock }): Route {
  return defineRoute({
    method: 'GET',
    path: '/audit/summary',
    operationId: 'summarizeAuditEvents',
    tag: 'Audit',
    summary: 'Count the events of the audit log by hour or day',
    description:
      'Chained events by kind and outcome, a few seconds late. Counts whole hours or days in UTC: the last 60 unless you send from and to, at most 32 days by hour and 400 days by day. Periods without events are omitted. One event may count many refusals of a minute.',
    policy: administratorSession,
    query: summaryQuery,
    success: { status: 200, data: summarySchema },
    example: {
      data: {
        per: 'day',
        from: '2026-01-01T00:00:00.000Z',
        to: '2026-01-02T00:00:00.000Z',
        counts: [{ from: '2026-01-01T00:00:00.000Z', event: 'auth.denied', outcome: 'denied', count: 3 }],
      },
    },
    async handle({ query: { per, from, to } }) {
      const range = rangeOf(per, from, to, clock.now());
      const found = await counts.read(per, range.from, range.to);
      return {
        data: {
          per,
          from: timestamp(range.from),
          to: timestamp(range.to),
          counts: found.map((one) => ({ ...one, from: timestamp(one.from) })),
        },
      };
    },
  });
}

/** Widens the range to whole steps, so that the first and the last bar of a chart are complete. */
function rangeOf(per: 'hour' | 'day', from: string | undefined, to: string | undefined, now: number) {
  const step = stepMs[per];
  const end = Math.ceil((to === undefined ? now + 1 : Date.parse(to)) / step) * step;
  const start = Math.floor((from === undefined ? end - 60 * step : Date.parse(from)) / step) * step;
  if (!(start < end)) throw new AppError('invalid_query', { message: 'from: must be before to' });
  if (end - start > maxMs[per]) {
    throw new AppError('invalid_query', {
      message: `from: must be at most ${maxMs[per] / day} days before to when per is ${per}`,
    });
  }
  return { from: start, to: end };
}
