import { type OutgoingHttpHeaders, STATUS_CODES, validateHeaderName, validateHeaderValue } from 'node:http';
import { second } from '../../core/clock.ts';

/** Headers in the form node:http takes: name and value by turns, or by name. */
export type AnswerHeaders = readonly string[] | OutgoingHttpHeaders;

/** Of lists that are kept and sent again and again, as those of a site's files are. */
const known = new WeakMap<readonly string[], { readonly status: number; readonly text: string }>();

/** Status line and header lines. @throws TypeError for what node:http refuses in a name or a value. */
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

function statusLine(status: number): string {
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`;
}

function linesOf(headers: OutgoingHttpHeaders): string {
  return Object.entries(headers)
    .flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value]).map((one) => line(name, String(one))),
    )
    .join('');
}

/** V8 keeps joined text as a tree of its parts, and walks it each time the text is sent. */
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

/** Seconds for which an unused connection is kept, as node:http says it too. */
export const keptSeconds = 5;

let date = '';
let end = '';

/** What ends every head (RFC 9110 section 6.6.1); the date is made once a second. */
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
