import { type OutgoingHttpHeaders, STATUS_CODES, validateHeaderName, validateHeaderValue } from 'node:http';
import { second } from '../../core/clock.ts';
import { headerLines } from '../http-lines.ts';

/** Headers in the form node:http accepts: alternating names and values, or an object. */
export type AnswerHeaders = readonly string[] | OutgoingHttpHeaders;

/** Cache for header lists that are sent repeatedly, such as those of a site's files. */
const known = new WeakMap<readonly string[], { readonly status: number; readonly text: string }>();

/** Status line and header lines. @throws TypeError for a name or value that node:http refuses */
export function headLines(status: number, headers: AnswerHeaders): string {
  if (!isList(headers)) return statusLine(status) + linesOf(headers);
  const there = known.get(headers);
  if (there?.status === status) return there.text;
  let lines = statusLine(status);
  for (let at = 0; at < headers.length; at += 2) lines += line(headers[at] ?? '', headers[at + 1] ?? '');
  const text = inOnePiece(lines);
  known.set(headers, { status, text });
  return text;
}

/** The same for the answer of another server, whose reader checked it. */
export function passedLines(status: number, reason: string, headers: readonly string[]): string {
  return statusLine(status, reason) + headerLines(headers);
}

function statusLine(status: number, reason = STATUS_CODES[status] ?? 'unknown'): string {
  return `HTTP/1.1 ${status} ${reason}\r\n`;
}

function linesOf(headers: OutgoingHttpHeaders): string {
  return Object.entries(headers)
    .flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value]).map((one) => line(name, String(one))),
    )
    .join('');
}

/** V8 stores concatenated text as a tree, and would walk it each time the text is sent. */
function inOnePiece(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}

function isList(headers: AnswerHeaders): headers is readonly string[] {
  return Array.isArray(headers);
}

function line(name: string, value: string): string {
  validateHeaderName(name);
  validateHeaderValue(name, value);
  return `${name}: ${value}\r\n`;
}

/** Seconds for which an idle connection is kept; the same value that node:http announces. */
export const keptSeconds = 5;

let date = '';
let end = '';

/** The end of every head, with the date (RFC 9110 section 6.6.1), which is formatted once a second. */
export function headEnd(isLast: boolean): string {
  if (date === '') renew();
  return isLast ? `${date}Connection: close\r\n\r\n` : end;
}

function renew(): void {
  const now = Date.now();
  setTimeout(() => void (date = ''), second - (now % second)).unref();
  date = `Date: ${new Date(now).toUTCString()}\r\n`;
  end = inOnePiece(`${date}Connection: keep-alive\r\nKeep-Alive: timeout=${keptSeconds}\r\n\r\n`);
}
