import { z } from 'zod';
import { administratorSession } from '../../core/authorize.ts';
import { type Clock, day, timestamp } from '../../core/clock.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { timestampSchema } from '../../platform/schemas.ts';
import { exampleUsage } from './examples.ts';
import type { KeyStore } from './key-store.ts';
import { usageQuery, usageSchema } from './schemas.ts';
import type { UsageStore } from './usage.ts';
import { usageAnswer } from './usage-answer.ts';

const daysAhead = 30;

const endingDay = z
  .strictObject({ day: timestampSchema, personal: z.number().int(), service: z.number().int() })
  .meta({ id: 'EndingKeys' });

/** Charts over all keys, for administrators: how much they are used, and how many expire when. */
export function keyOverviewRoutes(deps: {
  read: { keys: Pick<KeyStore, 'endingByDay'>; usage: Pick<UsageStore, 'readAll'> };
  clock: Clock;
}): Route[] {
  const { read, clock } = deps;
  return [
    defineRoute({
      method: 'GET',
      path: '/tokens/totals',
      operationId: 'readUsageOfAllKeys',
      tag: 'Service keys',
      summary: 'Read the usage of all keys together',
      description:
        'Personal and service keys. Counts per minute (kept for 2 days), hour (32 days) or day (400 days), by outcome, at most 60 s late. Covers the last 60 periods unless you send from and to.',
      policy: administratorSession,
      query: usageQuery,
      success: { status: 200, data: usageSchema },
      example: { data: exampleUsage },
      handle: async ({ query }) => ({ data: await usageAnswer(query, clock.now(), read.usage.readAll) }),
    }),
    defineRoute({
      method: 'GET',
      path: '/tokens/ending',
      operationId: 'countEndingKeys',
      tag: 'Service keys',
      summary: 'Count the keys that end soon, by day',
      description: `Active keys of users and services that end in the next ${daysAhead} days, by day (UTC). Includes days without keys. Counting stops at 100,000 keys.`,
      policy: administratorSession,
      success: { status: 200, data: z.array(endingDay) },
      example: { data: [{ day: '2026-01-08T00:00:00.000Z', personal: 12, service: 1 }] },
      async handle() {
        const now = clock.now();
        const found = await read.keys.endingByDay(now, now + daysAhead * day);
        const first = now - (now % day);
        const data = Array.from({ length: daysAhead + 1 }, (_, at) => {
          const from = first + at * day;
          const of = (type: 'personal' | 'service') =>
            found.find((one) => one.day === from && one.type === type)?.keys ?? 0;
          return { day: timestamp(from), personal: of('personal'), service: of('service') };
        });
        return { data };
      },
    }),
  ];
}
