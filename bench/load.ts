import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';

/** The result of one run of `wrk` (Debian). */
export type Load = {
  readonly perSecond: number;
  /** Requests per second of processor time of the server, user and kernel; NaN without `server`. */
  readonly perProcessorSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly requests: number;
  /** Responses with a status outside 2xx and 3xx. */
  readonly refused: number;
  /** Connections that failed, timed out or were cut. */
  readonly broken: number;
};

export const serverCore = '0';
export const loadCore = '1';
const connections = 64;

/** Sends requests to `url` for `seconds` over 64 connections, from a separate core. `server`: its process id. */
export async function load(
  url: string,
  options: { seconds: number; headers?: Readonly<Record<string, string>>; script?: string; server?: number },
): Promise<Load> {
  const { seconds, headers = {}, script, server } = options;
  // By default wrk counts a response that takes 2 s as broken. On a busy machine a first one can take longer.
  const patience = ['--timeout', '10s'];
  const args = ['-c', loadCore, 'wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '--latency', ...patience];
  for (const [name, value] of Object.entries(headers)) args.push('-H', `${name}: ${value}`);
  if (script !== undefined) args.push('-s', script);
  const before = processorSeconds(server);
  const wrk = spawn('taskset', [...args, url], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  wrk.stdout.setEncoding('utf8').on('data', (chunk: string) => void (text += chunk));
  const [code]: unknown[] = await once(wrk, 'close');
  if (code !== 0) throw new Error(`wrk failed (${String(code)}): ${text}`);
  return read(text, processorSeconds(server) - before);
}

/**
 * Responses with content in a second. When another load slows the machine down, the store is late and the gateway returns 503
 * (threat T16). Those do not count, and with many of them the measurement is invalid.
 */
export async function goodLoad(
  url: string,
  seconds: number,
  headers: Record<string, string>,
): Promise<number> {
  const { perSecond: value, requests, refused, broken } = await load(url, { seconds, headers });
  if (refused > requests / 20 || broken > 0)
    throw new Error(`${refused} of ${requests} requests were refused, ${broken} broke.`);
  return (value * (requests - refused)) / requests;
}

/** Processor time of all threads of the process (proc_pid_stat(5)), in steps of 10 ms. */
export function processorSeconds(pid: number | undefined): number {
  if (pid === undefined) return Number.NaN;
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The second field, the name, may hold spaces; it ends with the last parenthesis.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** USER_HZ, 100 on every architecture that Linux has today. */
const ticksPerSecond = 100;

function read(text: string, busySeconds: number): Load {
  const number = (pattern: RegExp) => Number(pattern.exec(text)?.[1] ?? 0);
  const socket = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(text);
  const requests = number(/(\d+) requests in/);
  return {
    perSecond: number(/Requests\/sec:\s+([\d.]+)/),
    perProcessorSecond: requests / busySeconds,
    p50: milliseconds(/50%\s+([\d.]+)(us|ms|s)/.exec(text)),
    p99: milliseconds(/99%\s+([\d.]+)(us|ms|s)/.exec(text)),
    requests,
    refused: number(/Non-2xx or 3xx responses: (\d+)/),
    broken: socket === null ? 0 : socket.slice(1).reduce((sum, count) => sum + Number(count), 0),
  };
}

function milliseconds(match: RegExpExecArray | null): number {
  if (match === null) return 0;
  const factor = { us: 0.001, ms: 1, s: 1_000 }[match[2] ?? 'ms'] ?? 1;
  return Number(match[1]) * factor;
}
