import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { type PodSettings, readPodSettings } from '../../config/pod-settings.ts';
import { minute, second } from '../../core/clock.ts';
import type { BuildFailure, BuildJob } from '../../features/engine/contract.ts';
import { makeReadable } from '../../features/engine/local/folders.ts';
import { directoryIn, findOutput, maxOutput, outputIn, storeOutput } from '../../features/engine/output.ts';
import { unpackTree } from '../../features/engine/tree.ts';
import type { Blob } from '../../platform/blobs/blobs.ts';

/**
 * The program that shares a pod with the code of a repository: it fetches files from Postern and sends the output of a
 * build. When it fails, it writes a PodFailure as JSON to the termination file, in at most 4096 bytes (the limit of Kubernetes).
 */
export type PodFailure = Pick<BuildFailure, 'reason' | 'message' | 'fix'>;

export type PodDeps = {
  readonly settings: PodSettings;
  readonly fetch: typeof fetch;
  readonly wait: (ms: number) => Promise<void>;
};

export const inThisPod = (): PodDeps => ({ settings: readPodSettings(), fetch, wait: pause });

/** For people, unlike other errors. */
class Failed extends Error {
  readonly failure: PodFailure;
  constructor(failure: PodFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** No web process answers now: perhaps all of them are being replaced. */
class Unavailable extends Failed {}

const retriedMs = minute;
const pauseMs = 2 * second;

/** Puts the files of the ticket into `folder`, in place of those that are there. Returns the exit code. */
export async function runPodFetch(deps: PodDeps, folder: string): Promise<number> {
  return await reporting(deps, fetchFailure, async () => {
    await mkdir(folder, { recursive: true });
    // A container that starts again finds what it left.
    for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true, force: true });
    await untilAvailable(deps, async () => {
      const { body } = await request(deps, fetchFailure, { method: 'GET' });
      await unpackTree(Readable.from(body ?? []), folder);
    });
  });
}

/** Sends the output of the build in `folder`, whose processes have ended. Returns the exit code. */
export async function runPodSend(
  deps: PodDeps,
  folder: string,
  build: Pick<BuildJob, 'directory' | 'output'>,
): Promise<number> {
  return await reporting(deps, sendFailure, async () => {
    const directory = await directoryIn(folder, build);
    if (typeof directory !== 'string') throw new Failed(directory);
    const output = await outputIn(folder, build);
    if (typeof output !== 'string') throw new Failed(output);
    await makeReadable(output);
    const found = await findOutput(output, maxOutput);
    if (found.kind === 'failed') throw new Failed(found);
    await untilAvailable(deps, () => storeOutput(found, { write: (archive) => send(deps, archive) }));
  });
}

async function send(deps: PodDeps, archive: Readable): Promise<Blob> {
  const response = await request(deps, sendFailure, {
    method: 'PUT',
    body: Readable.toWeb(archive),
    duplex: 'half',
    headers: { 'content-type': 'application/gzip' },
  });
  // The route's schema guarantees this shape.
  const { data } = (await response.json()) as { data: Blob };
  return data;
}

/** @throws Failed unless the answer is good */
async function request(
  { settings: { url, ticket }, fetch }: PodDeps,
  failureOf: (why: string) => PodFailure,
  {
    headers: own,
    ...init
  }: Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> },
): Promise<Response> {
  const headers = { ...own, authorization: `Bearer ${ticket}` };
  let response: Response;
  try {
    response = await fetch(url, { ...init, headers, redirect: 'manual' });
  } catch (error) {
    const code = codeOf(error instanceof Error ? error.cause : undefined);
    if (!noAnswer.includes(code)) throw error;
    throw new Unavailable(failureOf(`no connection to Postern (${code})`));
  }
  if (response.ok) return response;
  const { status } = response;
  const { message = `status ${status}`, hint = '', details = {} } = await errorIn(response);
  if (status === 503) throw new Unavailable(failureOf(message));
  if (status === 507) throw new Failed({ reason: 'disk_full', message, fix: hint });
  if (details.reason === 'output_too_large' || details.reason === 'unsafe_output')
    throw new Failed({
      reason: details.reason,
      message,
      fix: 'Set build.output to the folder with the result alone.',
    });
  throw new Failed(failureOf(message));
}

type ErrorBody = {
  readonly message?: string;
  readonly hint?: string;
  readonly details?: { readonly reason?: unknown };
};

/** A proxy may answer with something else. */
async function errorIn(response: Response): Promise<ErrorBody> {
  try {
    // Every refusal of Postern has this envelope.
    const { error } = (await response.json()) as { error?: ErrorBody };
    return error ?? {};
  } catch {
    return {};
  }
}

/** Errors of connections without an answer. The last two come from Node's client. */
const noAnswer = ['ECONNREFUSED', 'ECONNRESET', 'UND_ERR_SOCKET', 'UND_ERR_CONNECT_TIMEOUT'];

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

const fetchFailure = (why: string): PodFailure => ({
  reason: 'no_source',
  message: `The pod could not fetch its files: ${withFullStop(why)}`,
  fix: 'Deploy again. If it fails again, ask an administrator.',
});

const sendFailure = (why: string): PodFailure => ({
  reason: 'no_output',
  message: `The pod could not send the output of the build: ${withFullStop(why)}`,
  fix: 'Deploy again. If it fails again, ask an administrator.',
});

const withFullStop = (why: string) => `${why.replace(/\.$/, '')}.`;

async function untilAvailable({ wait }: PodDeps, attempt: () => Promise<unknown>): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += pauseMs) {
    try {
      await attempt();
      return;
    } catch (error) {
      if (!(error instanceof Unavailable) || waitedMs >= retriedMs) throw error;
      await wait(pauseMs);
    }
  }
}

async function reporting(
  { settings: { terminationFile } }: PodDeps,
  failureOf: (why: string) => PodFailure,
  work: () => Promise<void>,
): Promise<number> {
  try {
    await work();
    return 0;
  } catch (error) {
    const { reason, message, fix } = failureFrom(error, failureOf);
    console.error(`postern: ${message} ${fix}`);
    // Names of files are in it, of up to four bytes a character.
    await writeFile(terminationFile, JSON.stringify({ reason, message: message.slice(0, 500), fix }));
    return 1;
  }
}

function failureFrom(error: unknown, failureOf: (why: string) => PodFailure): PodFailure {
  if (error instanceof Failed) return error.failure;
  if (codeOf(error) === 'ENOSPC')
    return {
      reason: 'disk_full',
      message: 'The files do not fit on the disk of the pod.',
      fix: 'Remove large files from the repository, or ask an administrator for a larger disk.',
    };
  return failureOf(error instanceof Error ? error.message : String(error));
}
