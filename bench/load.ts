import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** The result of one run of `wrk` (Debian). */
export type Load = {
  readonly perSecond: number;
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

/** Sends requests to `url` for `seconds` over 64 connections, from a separate core. */
export async function load(
  url: string,
  options: { seconds: number; headers?: Readonly<Record<string, string>>; script?: string },
): Promise<Load> {
  const { seconds, headers = {}, script } = options;
  const args = ['-c', loadCore, 'wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '--latency'];
  for (const [name, value] of Object.entries(headers)) args.push('-H', `${name}: ${value}`);
  if (script !== undefined) args.push('-s', script);
  const wrk = spawn('taskset', [...args, url], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  wrk.stdout.setEncoding('utf8').on('data', (chunk: string) => void (text += chunk));
  const [code]: unknown[] = await once(wrk, 'close');
  if (code !== 0) throw new Error(`wrk failed (${String(code)}): ${text}`);
  return read(text);
}

function read(text: string): Load {
  const number = (pattern: RegExp) => Number(pattern.exec(text)?.[1] ?? 0);
  const socket = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(text);
  return {
    perSecond: number(/Requests\/sec:\s+([\d.]+)/),
    p50: milliseconds(/50%\s+([\d.]+)(us|ms|s)/.exec(text)),
    p99: milliseconds(/99%\s+([\d.]+)(us|ms|s)/.exec(text)),
    requests: number(/(\d+) requests in/),
    refused: number(/Non-2xx or 3xx responses: (\d+)/),
    broken: socket === null ? 0 : socket.slice(1).reduce((sum, count) => sum + Number(count), 0),
  };
}

function milliseconds(match: RegExpExecArray | null): number {
  if (match === null) return 0;
  const factor = { us: 0.001, ms: 1, s: 1_000 }[match[2] ?? 'ms'] ?? 1;
  return Number(match[1]) * factor;
}
