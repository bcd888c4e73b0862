import type { IncomingHttpHeaders } from 'node:http';

/** The header section of a request, shared by all requests of a connection that repeat it. Never changed. */
export type Head = {
  /** Names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** Name and value by turns, as they were sent. */
  readonly rawHeaders: string[];
};

/** Bytes of a whole request. What is longer is rare, and node:http has the rules for it. */
const mostBytes = 8_192;

const requestStart = Buffer.from('GET /');
const requestEnd = Buffer.from(' HTTP/1.1\r\n');
const headEnd = '\r\n\r\n';

/** RFC 9112 section 5: a token, a colon, blanks, visible ASCII. No folded lines, no bytes above ASCII. */
const fieldLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~]*)$/;

/** Headers that change how a message is cut from the connection or what the connection is for, or that Node keeps otherwise. */
const notPlain = new Set([
  'content-length',
  'expect',
  // Node takes it for Connection.
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  // Of the one Node makes a list, and of the other nothing.
  'set-cookie',
  '__proto__',
]);

/** Where the parts of a plain request lie in its text. */
export type Plain = { readonly target: string; readonly section: string };

/**
 * The target and the header section when the bytes are one whole GET for a path, in HTTP/1.1, that ends where they end.
 * Undefined for everything else. Whether the section is plain too is for `readSection` to say.
 */
export function splitRequest(chunk: Buffer): Plain | undefined {
  if (chunk.length > mostBytes) return undefined;
  if (!isAt(chunk, 0, requestStart)) return undefined;
  let end = requestStart.length;
  // Visible ASCII; undefined, behind the last byte, is neither smaller nor larger than anything.
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

/** Undefined for a section that node:http should read: more than one request, a body, a doubtful line, a name sent twice. */
export function readSection(section: string): Head | undefined {
  if (section.indexOf(headEnd) !== section.length - headEnd.length) return undefined;
  // Without a prototype, so that no name means anything but itself.
  const headers: IncomingHttpHeaders = Object.create(null) as IncomingHttpHeaders;
  const rawHeaders: string[] = [];
  for (const line of section.slice(0, -headEnd.length).split('\r\n')) {
    const [, name, padded] = fieldLine.exec(line) ?? [];
    if (name === undefined || padded === undefined) return undefined;
    const lower = name.toLowerCase();
    // A copy: a piece cut from the section would keep all of it wherever the value is remembered.
    const value = Buffer.from(padded.trimEnd(), 'latin1').toString('latin1');
    if (lower in headers || notPlain.has(lower)) return undefined;
    if (lower === 'connection' && value.toLowerCase() !== 'keep-alive') return undefined;
    headers[lower] = value;
    rawHeaders.push(name, value);
  }
  return headers.host === undefined ? undefined : { headers, rawHeaders };
}
