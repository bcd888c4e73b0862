import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { minute } from '../../../../core/clock.ts';
import { isOpen } from '../../../../platform/listeners.ts';
import {
  hasEnded,
  processesOf,
  processesWith,
  type Usage,
  usageBelow,
  usageOf,
} from '../../../../platform/processes.ts';
import { threadsFor } from '../../build-failures.ts';
import { type Address, EngineUnavailable, type LogEntry, type ObservedProcess } from '../../contract.ts';
import { bytesBelow, removeFolder } from '../folders.ts';
import { readJson } from '../json-files.ts';
import { lastOfLogFiles, nextIdIn, stateOfLogFiles } from '../log-files.ts';
import { endRecorded, endRest } from '../recorder/end-recorded.ts';
import { type Ended, type EndRequest, files, recorderMark, type Started } from '../recorder/task.ts';
import { failuresAfter, pauseMs } from './back-off.ts';
import { exceeded } from './limits.ts';
import { askHealth, findReach, type Reach } from './reach.ts';
import { makeCommandFolders } from '../sandbox.ts';
import { newRecord, readRecord, type ServiceRecord, writeRecord } from './record.ts';
import { choosePort, type StartDeps, startCommand, unpack, type Wanted } from './start.ts';

/**
 * One process service or database of one Environment: the desired state, the actual state, and the next step between them.
 * Steps run one at a time. State that must outlive this process is in files of its folder (record.ts, recorder/task.ts).
 */
export type Service = {
  /** Reads the state that an earlier process left. Call it first. */
  adopt(): Promise<void>;
  /** Sets the desired state. Null: end the service and remove its folder. Starts immediately; settled() waits for it. */
  want(desired: Wanted | null): void;
  /** Starts the next step if one is due and none is running. Call it four times a second. */
  look(): void;
  /** Resolves when no step is running. Rejects when the service could not be removed. */
  settled(): Promise<void>;
  observe(): Promise<ObservedProcess | undefined>;
  address(): Promise<Address | null>;
  readonly port: number | null;
  /** The service was removed completely. */
  readonly isGone: boolean;
};

type Listens = Extract<Reach, { kind: 'listens' }>;

type Running = Started & {
  /** Why it is not ready yet, as a message for people. */
  waiting: string | null;
  ready?: Pick<Listens, 'host' | 'sockets'> & { readonly since: number };
  /** The check that last determined which processes listen on its port. */
  reachedAt: number;
  /** Duration of its last ready period, in ms. */
  wasReadyMs: number;
  isAsked: boolean;
  /** It was asked to end. The gateway must not have its address, although the service may still answer for some time. */
  isEnding: boolean;
  measuredAt: number;
  /** Free disk space at the last measurement of the folder. */
  freeBytes: number;
  isMeasuring: boolean;
  /** Bytes of its folder. */
  bytes: number;
};

const shownLines = 10;
/** The engine checks a service that is ready once a second. */
const looksWhenReady = 4;
/** The engine checks once a minute which processes listen on the port, because the kernel walks through all sockets of the machine. */
const looksUntilReached = 240;
/** Interval between measurements of the folder, in ms. One follows earlier when the disk has lost this fraction of the limit: 1/40. */
const [measureMs, measuredShares] = [5 * minute, 40];

export function createService(
  deps: StartDeps & {
    readonly name: string;
    readonly folder: string;
    /** Free disk space, at most a second old. */
    readonly freeBytes: () => number;
    readonly now: () => number;
    readonly onDefect: (error: unknown) => void;
  },
): Service {
  const { folder, now } = deps;
  const logFolder = join(folder, files.log);
  let desired: Wanted | null | undefined;
  let record: ServiceRecord | undefined;
  let running: Running | undefined;
  let end: { readonly reason: string; readonly at: number } | undefined;
  let isGone = false;
  let last: Promise<void> = Promise.resolve();
  let steps = 0;
  let looks = 0;
  let newest: { readonly state: string; readonly lines: readonly LogEntry[] } | undefined;

  function inTurn(work: () => Promise<void>): void {
    steps += 1;
    last = last
      // A failure was reported, and the next step may succeed.
      .catch(() => undefined)
      .then(work)
      .finally(() => {
        steps -= 1;
      });
    last.catch(deps.onDefect);
  }

  function fresh(waiting: string | null): Omit<Running, keyof Started> {
    return { waiting, isAsked: false, isEnding: false, reachedAt: looks, wasReadyMs: 0, ...notMeasured() };
  }

  function notMeasured() {
    return {
      measuredAt: Number.NEGATIVE_INFINITY,
      freeBytes: deps.freeBytes(),
      isMeasuring: false,
      bytes: 0,
    };
  }

  function write(changes: Partial<ServiceRecord>): void {
    if (record === undefined) return;
    record = { ...record, ...changes };
    writeRecord(folder, record);
  }

  function readyMsOf({ ready, wasReadyMs }: Running): number {
    return ready === undefined ? wasReadyMs : now() - ready.since;
  }

  function fail(reason: string): void {
    const readyMs = running === undefined ? 0 : readyMsOf(running);
    running = undefined;
    end = { reason, at: now() };
    // An earlier engine may have counted this end already.
    if (record?.isEndCounted === false)
      write({ failures: failuresAfter(record.failures, readyMs), isEndCounted: true });
  }

  async function step(): Promise<void> {
    if (running !== undefined) await noticeEnd(running);
    if (desired === null) return await leave();
    if (desired?.isAsleep === true) return await fallAsleep();
    if (desired !== undefined) await follow(desired);
    if (running !== undefined && record !== undefined) await watch(running, record);
  }

  async function leave(): Promise<void> {
    await stop({ reason: null, isGentle: true });
    await endRest(folder);
    await removeFolder(folder);
    record = end = undefined;
    isGone = true;
  }

  async function fallAsleep(): Promise<void> {
    await stop({ reason: null, isGentle: true });
    end = undefined;
    if (record !== undefined && record.failures > 0) write({ failures: 0 });
  }

  async function follow(wanted: Wanted): Promise<void> {
    isGone = false;
    if (record?.revision !== wanted.revision) {
      await stop({ reason: null, isGentle: true });
      end = undefined;
      await mkdir(logFolder, { recursive: true, mode: 0o700 });
      record = newRecord(wanted, { port: record?.port ?? null, firstLine: nextIdIn(logFolder) });
      writeRecord(folder, record);
    }
    const isDue = end === undefined || now() >= end.at + pauseMs(record.failures);
    if (running === undefined && isDue) await start(wanted, record);
  }

  async function start(wanted: Wanted, last: ServiceRecord) {
    const lastReason = end?.reason ?? null;
    end = undefined;
    write({ isEndCounted: false });
    try {
      if (!last.isUnpacked) await unpack(wanted, folder, deps);
      const holder = (await deps.network?.open()) ?? null;
      const port = await choosePort(wanted, last, holder, deps, (taken) => write({ port: taken }));
      write({ isUnpacked: true, holder, starts: last.starts + 1 });
      const started = await startCommand(wanted, folder, { port, holder }, deps);
      running = { ...started, ...fresh(lastReason) };
    } catch (error) {
      await endRest(folder);
      if (!(error instanceof EngineUnavailable)) deps.onDefect(error);
      const why = error instanceof EngineUnavailable ? error.message : 'its files cannot be prepared';
      fail(`cannot be started: ${why}`);
    }
  }

  /** Handles the end of the command, or of the command and its recorder. */
  async function noticeEnd(current: Running): Promise<void> {
    const isRecorderGone = await hasEnded(current.recorder);
    const hasWritten = existsSync(join(folder, files.ended));
    if (!hasWritten && !isRecorderGone) return;
    const ended = await readJson<Ended>(join(folder, files.ended));
    await endRest(folder);
    const reason = ended === undefined ? 'ended together with its recorder' : ended.reason;
    if (reason === null) running = undefined;
    else fail(`${reason}${await portNote()}`);
  }

  async function portNote(): Promise<string> {
    const { port = null, holder = null, isDatabase = false } = record ?? {};
    if (port === null) return '';
    const reach = await findReach({ port, holder, isDatabase, known: new Map(), pids: async () => [] });
    return reach.kind === 'taken' ? `; another process listens on port ${port}` : '';
  }

  async function watch(
    current: Running,
    { port, holder, health, isDatabase, memoryBytes }: ServiceRecord,
  ): Promise<void> {
    const excess = exceeded(await usage(current.root), current.bytes, { ...deps.limits, memoryBytes });
    if (excess !== undefined) {
      await stopFailed(excess.reason);
      if (excess.limit === 'disk') await empty();
      return;
    }
    const hasGrown = current.freeBytes - deps.freeBytes() >= deps.limits.diskBytes / measuredShares;
    if (hasGrown || now() - current.measuredAt >= measureMs) measure(current, isDatabase);
    if (holder !== null && (await hasEnded(holder))) return await stopFailed('lost its network');
    if (port === null) return;
    if (relayOf(holder, isDatabase) !== null) {
      const problem = await deps.network?.relay().catch(unavailable);
      if (problem !== undefined) return await stopFailed(`cannot be reached: ${problem.message}`);
    }
    const reach = await reachOf(current, port, holder);
    if (reach.kind === 'taken') return await stopFailed(reach.reason);
    if (reach.kind === 'waiting') {
      current.waiting = reach.reason;
      // An ending process often closes its port first.
      current.wasReadyMs = readyMsOf(current);
      delete current.ready;
    } else if (current.ready !== undefined) current.ready = { ...current.ready, ...reach };
    else if (health === null) current.ready = { ...reach, since: now() };
    else if (!current.isAsked) {
      current.isAsked = true;
      // Not awaited: a slow answer must not delay the check of its memory.
      void askHealth({ host: reach.host, port, ...relayOf(holder, isDatabase) }, health).then((problem) => {
        current.isAsked = false;
        current.waiting = problem ?? null;
        if (problem === undefined) current.ready = { ...reach, since: now() };
      });
    }
  }

  /** Null: Postern has the same network. Only other services of the Environment reach a database. */
  function relayOf(holder: number | null, isDatabase: boolean): Pick<Address, 'relay'> | null {
    return holder === null || isDatabase || deps.network === undefined
      ? null
      : { relay: deps.network.socket };
  }

  async function usage(root: number): Promise<Usage> {
    if (root === 0) return usageOf([]);
    if (deps.isolation.kind === 'bwrap') return await usageBelow(root, threadsFor(deps.limits));
    // Without a sandbox, a process can leave its parent but stays in the group.
    return usageOf(await processesOf(root));
  }

  /** Measures the folder, which can be large. Do not await it. */
  function measure(current: Running, isDatabase: boolean): void {
    if (current.isMeasuring) return;
    current.isMeasuring = true;
    current.measuredAt = now();
    current.freeBytes = deps.freeBytes();
    const folders = isDatabase ? [folder, deps.dataFolder] : [folder];
    void Promise.all(folders.map(bytesBelow)).then((bytes) => {
      current.bytes = bytes.reduce((sum, one) => sum + one, 0);
      current.isMeasuring = false;
    });
  }

  /** Removes the files, which the next start unpacks again. The data of a database stays. */
  async function empty(): Promise<void> {
    await makeCommandFolders(folder);
    write({ isUnpacked: false });
  }

  async function stopFailed(reason: string): Promise<void> {
    const current = running;
    await stop({ reason, isGentle: false });
    running = current;
    fail(reason);
  }

  async function stop(request: EndRequest): Promise<void> {
    if (running === undefined) return;
    running.isEnding = true;
    await endRecorded(folder, running.recorder, request, deps.graceMs);
    running = undefined;
  }

  async function reachOf(current: Running, port: number, holder: number | null): Promise<Reach> {
    const { root, ready } = current;
    // In its own network, only the Environment itself could have taken the port meanwhile.
    const isKnown = holder !== null && looks - current.reachedAt < looksUntilReached;
    if (isKnown && ready !== undefined && [...ready.sockets].every(isOpen))
      return { kind: 'listens', host: ready.host, sockets: ready.sockets };
    current.reachedAt = looks;
    return await findReach({
      port,
      holder,
      isDatabase: record?.isDatabase ?? false,
      known: ready?.sockets ?? new Map(),
      pids: async () => (await usage(root)).pids,
    });
  }

  /** Rereads the log only when it has changed. */
  async function newestLines(): Promise<readonly LogEntry[]> {
    const state = stateOfLogFiles(logFolder);
    if (newest?.state !== state) newest = { state, lines: await lastOfLogFiles(logFolder, 2 * shownLines) };
    return newest.lines;
  }

  return {
    async adopt() {
      record = await readRecord(folder);
      const started = await readJson<Started>(join(folder, files.started));
      if (record === undefined || started === undefined) return await endRest(folder);
      // This order matters: the recorder records how the service ended, and then ends.
      const isThere = (await processesWith(...recorderMark(folder))).includes(started.recorder);
      const ended = await readJson<Ended>(join(folder, files.ended));
      if (ended !== undefined || isThere) running = { ...started, ...fresh(null) };
      else {
        await endRest(folder);
        fail('ended together with its recorder');
      }
      if (running !== undefined) await noticeEnd(running);
    },

    want(next) {
      desired = next;
      inTurn(step);
    },

    look() {
      looks += 1;
      const isDue = running?.ready === undefined || looks % looksWhenReady === 0;
      if (isDue && steps === 0 && !isGone) inTurn(step);
    },

    settled: () => last,

    async observe() {
      const revision = desired?.revision ?? record?.revision;
      if (revision === undefined || isGone) return undefined;
      const isCurrent = record?.revision === revision;
      const lines = isCurrent ? await newestLines() : [];
      const output = lines.filter(({ id, stream }) => id >= (record?.firstLine ?? 0) && stream !== 'postern');
      const restarts = isCurrent ? Math.max(0, (record?.starts ?? 0) - 1) : 0;
      return {
        service: deps.name,
        revision,
        ...stateOf(isCurrent),
        lastLines: output.slice(-shownLines).map(({ text }) => text),
        restarts,
      };
    },

    async address() {
      const { port = null, holder = null, isDatabase = false } = record ?? {};
      if (running === undefined || !isServed(running) || port === null) return null;
      const reach = await reachOf(running, port, holder);
      return reach.kind === 'listens' ? { host: reach.host, port, ...relayOf(holder, isDatabase) } : null;
    },

    get port() {
      return record?.port ?? null;
    },
    get isGone() {
      return isGone;
    },
  };

  function stateOf(isCurrent: boolean): Pick<ObservedProcess, 'state' | 'reason'> {
    if (!isCurrent) return { state: desired?.isAsleep === true ? 'stopped' : 'starting', reason: null };
    if (running?.isEnding === true)
      return { state: 'starting', reason: 'its earlier process has not ended yet' };
    if (running !== undefined)
      return isServed(running)
        ? { state: 'ready', reason: null }
        : { state: 'starting', reason: running.waiting };
    if (end !== undefined) return { state: 'failed', reason: end.reason };
    return { state: desired?.isAsleep === false ? 'starting' : 'stopped', reason: null };
  }
}

function unavailable(error: unknown): EngineUnavailable {
  if (error instanceof EngineUnavailable) return error;
  throw error;
}

function isServed({ ready, isEnding }: Running): boolean {
  return ready !== undefined && !isEnding;
}
