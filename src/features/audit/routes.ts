import { z } from 'zod';
import { administratorSession } from '../../core/authorize.ts';
import { type Clock, timestamp } from '../../core/clock.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { idParams } from '../../platform/schemas.ts';
import type { Audit, AuditEvent } from './audit.ts';
import { exportTypes, writeExport } from './export.ts';
import {
  exampleEvent,
  exportQuery,
  listedEventResponse,
  searchQuery,
  toAuditEventResponse,
} from './schemas.ts';

type AuditRoutesDeps = {
  readonly audit: Audit;
  readonly clock: Clock;
  /** Names of people and keys by id; targets without a name are left out. */
  readonly names: (targets: readonly AuditEvent['target'][]) => Promise<ReadonlyMap<string, string>>;
};

const exampleListed = { ...exampleEvent, targetName: 'deploy' };

function toListed(event: AuditEvent, names: ReadonlyMap<string, string>) {
  return { ...toAuditEventResponse(event), targetName: names.get(event.target.id) ?? null };
}

export function auditRoutes({ audit, clock, names }: AuditRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/audit/events',
      operationId: 'listAuditEvents',
      tag: 'Audit',
      summary: 'Search the audit log, newest first',
      description:
        'An event must match every filter. Events that arrive while you page appear on the first page only, and no event appears twice.',
      policy: administratorSession,
      query: searchQuery,
      success: { status: 200, data: z.array(listedEventResponse), pagination: 'cursor' },
      example: { data: [exampleListed] },
      async handle({ query: { cursor, limit, ...filter } }) {
        const { events, nextCursor } = await audit.search(filter, cursor, limit);
        const known = await names(events.map(({ target }) => target));
        return { data: events.map((event) => toListed(event, known)), pagination: { limit, nextCursor } };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/audit/events/{id}',
      operationId: 'getAuditEvent',
      tag: 'Audit',
      summary: 'Read one event',
      policy: administratorSession,
      errors: ['not_found'],
      params: idParams('The event’s id, as in lists', exampleEvent.id),
      success: { status: 200, data: listedEventResponse },
      example: { data: exampleListed },
      async handle({ params: { id } }) {
        const event = await audit.get(id);
        const known = await names([event.target]);
        return { data: toListed(event, known) };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/audit/export',
      operationId: 'exportAuditEvents',
      tag: 'Audit',
      summary: 'Download the audit log, oldest first, as NDJSON or CSV',
      description:
        'Accepts the filters of the search. You can verify the NDJSON form of the whole log offline. In the CSV form, cells that a spreadsheet would run begin with an apostrophe. A download that ends early is incomplete, because of an error or because its session ended. The export itself is an event of the log.',
      policy: administratorSession,
      query: exportQuery,
      success: { status: 200, stream: ['application/x-ndjson', 'text/csv'] },
      async handle({ auditContext, query: { format, ...filter } }) {
        const pages = audit.walk(filter);
        // Read the first page before the answer begins, so that an unavailable database gives a 503 and not half a file.
        const first = await pages.next();
        await audit.recordExport(auditContext, filter, format);
        return {
          stream: writeExport(resumed(first, pages), format),
          contentType: exportTypes[format],
          fileName: `audit-${timestamp(clock.now()).slice(0, 10)}.${format}`,
        };
      },
    }),
  ];
}

async function* resumed(
  first: IteratorResult<readonly AuditEvent[]>,
  rest: AsyncGenerator<readonly AuditEvent[]>,
): AsyncGenerator<readonly AuditEvent[]> {
  if (!first.done) yield first.value;
  yield* rest;
}
