import type { IncomingHttpHeaders } from 'node:http';
import { trimBlanks } from '../../core/blanks.ts';

/** The header section of a request, shared by all requests of a connection that repeat it. Immutable. */
export type Head = {
  /** Names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** Alternating names and values, as the client sent them. */
  readonly rawHeaders: string[];
};

/** Maximum bytes of a complete request. Longer ones are rare, and node:http has the rules for them. */
const maxBytes = 8_192;

const requestStart = Buffer.from('GET /');
const requestEnd = Buffer.from(' HTTP/1.1\r\n');
const headEnd = '\r\n\r\n';

/**
 * RFC 9112 section 5: a token, a colon, blanks and visible ASCII. No folded lines, no bytes above ASCII. No two parts match
 * the same character: a long run of blanks would be scanned again from each of them.
 */
const fieldLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~]*)$/;

/** Headers that change message framing or the use of the connection, or that Node stores in a special form. */
const notPlain = new Set([
  'content-length',
  'expect',
  // Node treats it as Connection.
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  // Node makes a list of the first and ignores the second.
  'set-cookie',
  '__proto__',
]);

/** The parts of a plain request in its text. */
export type Plain = { readonly target: string; readonly section: string };

/**
 * The target and the header section when the bytes are exactly one complete HTTP/1.1 GET for a path. Undefined for
 * everything else. `readSection` decides whether the section is plain too.
 */
export function splitRequest(chunk: Buffer): Plain | undefined {
  if (chunk.length > maxBytes) return undefined;
  if (!isAt(chunk, 0, requestStart)) return undefined;
  let end = requestStart.length;
  // Visible ASCII. Past the last byte the value is undefined, for which every comparison is false.
  for (let byte = chunk[end]; byte !== undefined && byte > 0x20 && byte < 0x7f; byte = chunk[end]) end += 1;
  if (!isAt(chunk, end, requestEnd)) return undefined;
  return {
    target: chunk.toString('latin1', requestStart.length - 1, end),
    section: chunk.toString('latin1', end + requestEnd.length),
  };
}

function isAt(chunk: Buffer, from: number, what: Buffer): boolean {
  for (let at = 0; at < what.length; at++) if (chunk[from + at] !== what[at]) return false;
  return true;
}

/** Undefined for a section that node:http must read: more than one request, a body, a doubtful line, a repeated name. */
export function readSection(section: string): Head | undefined {
  const end = section.indexOf(headEnd);
  if (end < 0 || end + headEnd.length !== section.length) return undefined;
  // Without a prototype, so that no header name collides with an inherited property.
  const headers: IncomingHttpHeaders = Object.create(null) as IncomingHttpHeaders;
  const rawHeaders: string[] = [];
  for (const line of section.slice(0, end).split('\r\n')) {
    const [, name, padded] = fieldLine.exec(line) ?? [];
    if (name === undefined || padded === undefined) return undefined;
    const lower = name.toLowerCase();
    // A copy: a substring would keep the whole section in memory as long as the value is kept.
    const value = Buffer.from(trimBlanks(padded), 'latin1').toString('latin1');
    if (lower in headers || notPlain.has(lower)) return undefined;
    if (lower === 'connection' && value.toLowerCase() !== 'keep-alive') return undefined;
    headers[lower] = value;
    rawHeaders.push(name, value);
  }
  return headers.host === undefined ? undefined : { headers, rawHeaders };
}
