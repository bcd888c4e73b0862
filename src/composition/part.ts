import type { FastifyInstance } from 'fastify';
import type { Clock } from '../core/clock.ts';
import type { Random } from '../core/ids.ts';
import type { Blobs } from '../platform/blobs/blobs.ts';
import type { ChangeFeed } from '../platform/database/change-feed.ts';
import type { Kv } from '../platform/kv/kv.ts';
import type { Log } from '../platform/log.ts';
import type { Job } from '../platform/jobs.ts';
import type { Route } from '../platform/http.ts';
import type { routeCaller } from '../surfaces/mcp/call-route.ts';
import type { Authentication } from '../surfaces/web/authentication.ts';
import type { Authorization } from '../surfaces/web/authorization.ts';
import type { RequestLimits } from '../surfaces/web/request-limits.ts';
import type { RequestRecords } from '../surfaces/web/request-records.ts';

/** What a part may use of its process. Each names what it needs. */
export type Process = {
  readonly feed: ChangeFeed;
  /** False: this process may have missed a change. */
  readonly isFresh: () => boolean;
  readonly kv: Kv;
  readonly blobs: Blobs;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Identifies this process. */
  readonly holder: string;
};

/** The steps of a request, for pages that run them themselves. */
export type PageSteps = {
  readonly authentication: Authentication;
  readonly authorization: Authorization;
  readonly limits: RequestLimits;
  readonly records: RequestRecords;
  /** Calls a route by its operation id, in the steps of an HTTP request. */
  readonly callRoute: ReturnType<typeof routeCaller>;
};

export type Page = (scope: FastifyInstance) => void | Promise<void>;

/** What one file of composition/ builds, and what closes it. Nothing runs before start(). */
export type Part = {
  readonly services: Readonly<Record<string, unknown>>;
  readonly routes?: readonly Route[];
  readonly jobs?: readonly Job[];
  pages?(steps: PageSteps): readonly Page[];
  /** May be called again until it succeeds. */
  start?(): Promise<void>;
  /** Resolves when the work after a change is done. */
  settled?(): Promise<void>;
  /** Writes what is held in memory, and releases what start() took. */
  stop?(): Promise<void>;
};

/** Starts the parts in the order in which they were built: each may use what the earlier ones read. */
export async function startAll(parts: readonly Part[]): Promise<void> {
  for (const part of parts) await part.start?.();
}

/** Waits in reverse: the work of a part may give some to the earlier ones. */
export async function settleAll(parts: readonly Part[]): Promise<void> {
  for (const part of parts.toReversed()) await part.settled?.();
}

/** Stops the parts in reverse: each may still pass something to the earlier ones. */
export async function stopAll(parts: readonly Part[]): Promise<void> {
  await finishAll(parts.toReversed().flatMap((part) => [() => part.settled?.(), () => part.stop?.()]));
}

/** Runs every step even if an earlier one fails, then reports all failures together. */
export async function finishAll(steps: readonly (() => Promise<void> | undefined)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0)
    throw new AggregateError(failures, 'Not everything could be stopped; data in memory may be lost.');
}
