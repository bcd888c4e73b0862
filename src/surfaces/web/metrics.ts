import { totalmem } from 'node:os';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { CallResult } from '../../features/agents/call-result.ts';
import type { RetryCause } from '../../features/builds/builds.ts';

/** The only file that knows the metrics library. Labels are route patterns, never addresses, ids or values. */
export type RequestMetrics = {
  /** `elapsedMs`: null for a stream, whose time says nothing about how fast the server is. */
  count(method: string, route: string, status: number, elapsedMs: number | null): void;
};

export type Metrics = RequestMetrics & {
  readonly registry: Registry;
  readonly limiterFallback: Counter;
  readonly auditDropped: Counter;
  readonly grantsCorrupt: Counter;
  /** A run of periodic work. `at`: when it ended, in milliseconds since the epoch. */
  countJob(job: string, result: 'done' | 'failed', at: number): void;
  /** The state of each part at its last check. */
  noteParts(states: Readonly<Record<string, 'ok' | 'unavailable'>>): void;
  /** A request to the identity provider for which a client waited. */
  noteIdentity(result: 'answered' | 'unavailable', tookMs: number): void;
  /** `ageMs` is called at each scrape: milliseconds since this process last read the change feed. */
  watchFeed(ageMs: () => number): void;
  /** `freeBytes` of the disk that holds DATA_DIR is called at each scrape. */
  watchSpace(freeBytes: () => Promise<number>): void;
  /** `bytes` that the thread of the embedded database holds, called at each scrape. */
  watchDatabaseMemory(bytes: () => Promise<number>): void;
  /** Current work for people, as counted by the database. Null: the database did not answer. */
  noteWork(counts: WorkCounts | null): void;
  /** Counts a build whose end was written. `mistake`: a defect of Postern ended it. */
  countBuild(result: 'built' | 'failed' | 'mistake'): void;
  /** Counts a step of an Environment or a build that Postern retries. */
  countRetry(cause: RetryCause): void;
  /** Counts a call of an agent. `tool`: `external` for tools of external MCP servers, whose names others choose. */
  countAgentCall(tool: string, result: CallResult): void;
  /** `exchanged`, or why an ID token was refused. */
  countExchange(result: string): void;
  /** Adds memory, descriptors and the event loop, under the names that Node.js dashboards know. */
  watchProcess(): void;
  /** `reader` of the request; `visibility` of the requested address, `none` when it belongs to nothing. */
  countContent(reader: Reader, visibility: Visibility, status: number): void;
};

/** Current work for people in the installation. */
export type WorkCounts = {
  readonly builds: { readonly queued: number; readonly running: number };
  /** Time that the oldest queued build has waited, in ms. 0: no build is queued. */
  readonly oldestQueuedMs: number;
  /** Status → number. Environments that are torn down are left out. */
  readonly environments: Readonly<Record<string, number>>;
  /** Calls of agents that wait for the approval of a person. */
  readonly approvals: number;
  /** Status → number of accounts that people connected to external MCP servers. */
  readonly connections: Readonly<Record<string, number>>;
};

const visibilities = ['public', 'private', 'environment', 'none'] as const;
type Visibility = (typeof visibilities)[number];
/** The reader of a request to the gateway: the gateway itself, or node:http (decision 0032). */
const readers = ['fast', 'node'] as const;
type Reader = (typeof readers)[number];
type Tally = Record<Visibility, number>;

export function createMetrics(): Metrics {
  const registry = new Registry();
  // The library takes longer to count a request than some take to serve, so they are counted here and passed on at each
  // scrape.
  const requests = new Map<string, Map<string, Map<number, number>>>();
  function tallyOf(method: string, route: string): Map<number, number> {
    let ofMethod = requests.get(method);
    if (ofMethod === undefined) requests.set(method, (ofMethod = new Map()));
    let ofRoute = ofMethod.get(route);
    if (ofRoute === undefined) ofMethod.set(route, (ofRoute = new Map()));
    return ofRoute;
  }
  new Counter({
    name: 'postern_http_requests_total',
    help: 'Requests answered, by method, route pattern and status class.',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
    collect() {
      for (const [method, ofMethod] of requests) {
        for (const [route, tally] of ofMethod) {
          for (const [status, count] of tally)
            this.inc({ method, route, status: `${Math.floor(status / 100)}xx` }, count);
          tally.clear();
        }
      }
    },
  });
  const duration = new Histogram({
    name: 'postern_http_request_seconds',
    help: 'Time from the first byte of a request to the last byte of its response. Event streams are left out.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [registry],
  });
  // Like `requests`: counted here, and drained by collect().
  const answered = { fast: new Map<number, Tally>(), node: new Map<number, Tally>() };
  new Counter({
    name: 'postern_content_requests_total',
    help: 'Requests answered on content hosts, by visibility of the address, status class and reader: fast = the gateway parsed the request itself, node = node:http parsed it.',
    labelNames: ['visibility', 'status', 'reader'],
    registers: [registry],
    collect() {
      for (const reader of readers) {
        for (const [status, tally] of answered[reader]) {
          for (const visibility of visibilities) {
            if (tally[visibility] > 0)
              this.inc({ visibility, status: `${Math.floor(status / 100)}xx`, reader }, tally[visibility]);
            tally[visibility] = 0;
          }
        }
      }
    },
  });
  // Prometheus uses `job` itself for its targets: a label of that name would arrive there as exported_job.
  const jobRuns = new Counter({
    name: 'postern_job_runs_total',
    help: 'Runs of periodic work in this process, by job and result.',
    labelNames: ['job_name', 'result'],
    registers: [registry],
  });
  const jobDoneAt = new Gauge({
    name: 'postern_job_last_done_seconds',
    help: 'Time of the last successful run of a job in this process, in seconds since the epoch.',
    labelNames: ['job_name'],
    registers: [registry],
  });
  const parts = new Gauge({
    name: 'postern_part_up',
    help: '1 when the last check of the part (database, key-value store, …) succeeded, 0 when it failed.',
    labelNames: ['part'],
    registers: [registry],
  });
  const identity = new Histogram({
    name: 'postern_identity_check_seconds',
    help: 'Duration of requests to the identity provider, by whether it answered. Without an answer, Postern responded with 503.',
    labelNames: ['result'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 2.5],
    registers: [registry],
  });
  let feedAgeMs = () => Number.NaN;
  new Gauge({
    name: 'postern_feed_age_seconds',
    help: 'Seconds since this process last read the changes of other processes.',
    registers: [registry],
    collect() {
      this.set(feedAgeMs() / 1000);
    },
  });
  let freeBytes = async () => Number.NaN;
  new Gauge({
    name: 'postern_data_free_bytes',
    help: 'Free bytes on the disk of DATA_DIR. Below 64 MiB the embedded database refuses changes until space is free.',
    registers: [registry],
    async collect() {
      this.set(await freeBytes());
    },
  });
  let databaseBytes = async () => Number.NaN;
  new Gauge({
    name: 'postern_database_thread_bytes',
    help: 'Memory that the thread of the embedded database holds: its heap, and the memory of PostgreSQL itself.',
    registers: [registry],
    async collect() {
      this.set(await databaseBytes());
    },
  });
  new Gauge({
    name: 'postern_memory_limit_bytes',
    help: 'Memory that this process may use: the limit of its control group, or the memory of the machine.',
    registers: [registry],
    collect() {
      this.set(Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem()));
    },
  });
  const work = {
    builds: new Gauge({
      name: 'postern_builds',
      help: 'Builds of Environments that are queued or run, in the whole installation. Only workers report it.',
      labelNames: ['state'],
      registers: [registry],
    }),
    oldestQueued: new Gauge({
      name: 'postern_build_oldest_queued_seconds',
      help: 'Time that the oldest queued build has waited. 0 when no build is queued. Only workers report it.',
      registers: [registry],
    }),
    environments: new Gauge({
      name: 'postern_environments',
      help: 'Environments that are not torn down, by status, in the whole installation. Only workers report it.',
      labelNames: ['status'],
      registers: [registry],
    }),
    approvals: new Gauge({
      name: 'postern_agent_approvals_waiting',
      help: 'Calls of agents that wait for the approval of a person, in the whole installation. Only workers report it.',
      registers: [registry],
    }),
    connections: new Gauge({
      name: 'postern_mcp_connections',
      help: 'Accounts that people connected to external MCP servers, by status: broken = the person must connect again. Only workers report it.',
      labelNames: ['status'],
      registers: [registry],
    }),
  };
  const builds = new Counter({
    name: 'postern_builds_ended_total',
    help: 'Builds that ended, by result: mistake = a defect of Postern ended the build.',
    labelNames: ['result'],
    registers: [registry],
  });
  const retries = new Counter({
    name: 'postern_environment_retries_total',
    help: 'Steps of Environments and builds that Postern retries, by cause: engine, git, store, or mistake = a defect of Postern.',
    labelNames: ['cause'],
    registers: [registry],
  });
  // An alert on an increase does not see the first count of a series that did not exist before.
  for (const result of ['built', 'failed', 'mistake']) builds.inc({ result }, 0);
  for (const cause of ['engine', 'git', 'store', 'mistake']) retries.inc({ cause }, 0);
  const agentCalls = new Counter({
    name: 'postern_agent_calls_total',
    help: 'Calls of tools by agents, by tool and result: asked = the person must approve or confirm it first, refused = a rule refused it, failed = it could not be answered. external = any tool of an external MCP server.',
    labelNames: ['tool', 'result'],
    registers: [registry],
  });
  const exchanges = new Counter({
    name: 'postern_token_exchanges_total',
    help: 'ID tokens that pipelines sent, by result: exchanged, unavailable = no current keys of the issuer, or the reason of the refusal.',
    labelNames: ['result'],
    registers: [registry],
  });
  return {
    registry,
    limiterFallback: new Counter({
      name: 'postern_limiter_local_total',
      help: 'Requests limited by this process alone, because the key-value store did not answer.',
      registers: [registry],
    }),
    auditDropped: new Counter({
      name: 'postern_audit_denials_dropped_total',
      help: 'Denials that were counted but not written because their queue was full.',
      registers: [registry],
    }),
    grantsCorrupt: new Counter({
      name: 'postern_grants_corrupt_total',
      help: 'Records about private sites in the key-value store that failed verification; none of them opened a site.',
      registers: [registry],
    }),
    countJob(job, result, at) {
      jobRuns.inc({ job_name: job, result });
      if (result === 'done') jobDoneAt.set({ job_name: job }, at / 1000);
    },
    noteParts(states) {
      for (const [part, state] of Object.entries(states)) parts.set({ part }, state === 'ok' ? 1 : 0);
    },
    noteIdentity: (result, tookMs) => identity.observe({ result }, tookMs / 1000),
    watchFeed(ageMs) {
      feedAgeMs = ageMs;
    },
    watchSpace(ask) {
      freeBytes = ask;
    },
    watchDatabaseMemory(ask) {
      databaseBytes = ask;
    },
    noteWork(counts) {
      // A gauge without a value has no series, so an alert never judges by old counts.
      for (const gauge of Object.values(work)) gauge.reset();
      if (counts === null) {
        // reset() leaves a zero where a gauge has no labels.
        work.oldestQueued.remove();
        work.approvals.remove();
        return;
      }
      for (const [state, count] of Object.entries(counts.builds)) work.builds.set({ state }, count);
      work.oldestQueued.set(counts.oldestQueuedMs / 1000);
      for (const [status, count] of Object.entries(counts.environments))
        work.environments.set({ status }, count);
      work.approvals.set(counts.approvals);
      // A rule compares the number of broken ones with that of an hour ago, which must exist.
      for (const status of ['connected', 'broken'])
        work.connections.set({ status }, counts.connections[status] ?? 0);
    },
    countBuild: (result) => builds.inc({ result }),
    countRetry: (cause) => retries.inc({ cause }),
    countAgentCall: (tool, result) => agentCalls.inc({ tool, result }),
    countExchange: (result) => exchanges.inc({ result }),
    watchProcess: () => collectDefaultMetrics({ register: registry }),
    countContent(reader, visibility, status) {
      const tally = answered[reader].get(status) ?? { public: 0, private: 0, environment: 0, none: 0 };
      tally[visibility] += 1;
      answered[reader].set(status, tally);
    },
    count(method, route, status, elapsedMs) {
      const tally = tallyOf(method, route);
      tally.set(status, (tally.get(status) ?? 0) + 1);
      if (elapsedMs !== null) duration.observe(elapsedMs / 1000);
    },
  };
}
