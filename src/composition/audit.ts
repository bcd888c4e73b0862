import { second } from '../core/clock.ts';
import {
  type AuditEvent,
  auditEventResponse,
  createAudit,
  toAuditEventResponse,
  toTimelineResponse,
} from '../features/audit/audit.ts';
import { auditStore } from '../features/audit/audit-store.ts';
import { chainStore } from '../features/audit/chain-store.ts';
import { createChainWriter } from '../features/audit/chain-writer.ts';
import { countStore } from '../features/audit/count-store.ts';
import { createDenials } from '../features/audit/denials.ts';
import { auditRoutes } from '../features/audit/routes.ts';
import { signInReader } from '../features/audit/sign-ins.ts';
import { summaryRoute } from '../features/audit/summary-route.ts';
import { namesOfTargets } from '../features/audit/target-names.ts';
import type { Tx } from '../platform/database/database.ts';
import type { Sql } from '../platform/database/sql.ts';
import type { StoresOf } from '../platform/database/stores.ts';
import type { Part, Process } from './part.ts';

export function auditStores(deps: Pick<Process, 'clock' | 'random'>) {
  return {
    audit: (sql: Sql) => auditStore(sql, deps),
    auditCounts: countStore,
    signIns: signInReader,
    chain: chainStore,
  };
}

type Stores = StoresOf<ReturnType<typeof auditStores>>;

/** The audit log: events, counts of refusals, and the chain that seals both. */
export function createAuditPart({
  read,
  tx,
  clock,
  log,
  onDropped,
}: Pick<Process, 'clock' | 'log'> & {
  readonly read: Stores & Parameters<typeof namesOfTargets>[0];
  readonly tx: Tx<Stores>;
  readonly onDropped: (count: number) => void;
}) {
  const audit = createAudit({ read: read.audit, tx, clock });
  const names = namesOfTargets(read);
  const services = {
    audit,
    names,
    denials: createDenials({ clock, tx, onDropped }),
    chainWriter: createChainWriter({ read: read.chain, tx, clock, log }),
    /** Events as other features show them. A viewer who is null sees everything. */
    timelines: {
      schema: auditEventResponse,
      async ofKey(keyId: string, viewerId: string | null, cursor: string | undefined, limit: number) {
        const { events, nextCursor } = await audit.timeline(keyId, cursor, limit);
        const toResponse = (event: AuditEvent) =>
          viewerId === null ? toAuditEventResponse(event) : toTimelineResponse(event, viewerId);
        return { events: events.map(toResponse), nextCursor };
      },
      async ofTarget(target: string, viewerId: string, cursor: string | undefined, limit: number) {
        const { events, nextCursor } = await audit.search({ target }, cursor, limit);
        return { events: events.map((event) => toTimelineResponse(event, viewerId)), nextCursor };
      },
    },
  };
  return {
    services,
    routes: [...auditRoutes({ audit, clock, names }), summaryRoute({ counts: read.auditCounts, clock })],
    jobs: [
      { name: 'denials', everyMs: second, leased: false, run: () => services.denials.flush() },
      { name: 'seal', everyMs: second, leased: true, run: services.chainWriter.run },
    ],
    stop: () => services.denials.flush({ all: true }),
  } satisfies Part;
}
