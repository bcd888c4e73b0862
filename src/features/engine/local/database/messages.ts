import type { Readable } from 'node:stream';

/**
 * Messages of the PostgreSQL protocol 3.0 (PostgreSQL manual, part "Frontend/Backend Protocol"): one byte for the type, and
 * the length of the rest, itself included, in four.
 */

/** A client sent what PostgreSQL refuses with this SQLSTATE (PostgreSQL appendix A). */
export class Refusal extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** Reads this number of bytes. Undefined: the client has disconnected. */
export type Take = (bytes: number) => Promise<Buffer | undefined>;

export function takeFrom(stream: Readable): Take {
  const chunks: AsyncIterator<Buffer> = stream.iterator({ destroyOnReturn: false });
  let kept: Buffer[] = [];
  let size = 0;
  return async (bytes) => {
    while (size < bytes) {
      // A broken connection counts as ended.
      const next = await chunks.next().catch(() => undefined);
      if (next === undefined || next.done === true) return undefined;
      kept.push(next.value);
      size += next.value.length;
    }
    const whole = Buffer.concat(kept);
    kept = [whole.subarray(bytes)];
    size -= bytes;
    return whole.subarray(0, bytes);
  };
}

/** The next message, with its type and its length. Undefined: the client has disconnected. @throws Refusal */
export async function takeMessage(take: Take, maxBytes: number): Promise<Buffer | undefined> {
  const head = await take(headBytes);
  if (head === undefined) return undefined;
  const length = head.readInt32BE(1);
  if (length < 4 || length > maxBytes)
    throw new Refusal('08P01', `A message of ${length} bytes was sent; allowed are 4 to ${maxBytes}.`);
  const rest = await take(length - 4);
  return rest && Buffer.concat([head, rest]);
}

const headBytes = 5;

export function messageOf(type: string, ...parts: readonly (Buffer | string)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
  const head = Buffer.alloc(headBytes, type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

export const queryMessage = (text: string) => messageOf('Q', `${text}\0`);
export const syncMessage = messageOf('S');
/** Deletes a prepared statement. */
export const closeMessage = (name: string) => messageOf('C', `S${name}\0`);
/** Requests the password in clear text. */
export const passwordRequest = messageOf('R', Buffer.from([0, 0, 0, 3]));

/** An error after which the connection ends. */
export function fatalMessage({ code, message }: Refusal): Buffer {
  return messageOf('E', `SFATAL\0VFATAL\0C${code}\0M${message}\0\0`);
}

/** The first packet of a connection has no type. */
export function startupPacket(parameters: Readonly<Record<string, string>>): Buffer {
  const pairs = Object.entries(parameters).map((pair) => `${pair.join('\0')}\0`);
  const body = Buffer.from(`\0\x03\0\0${pairs.join('')}\0`);
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([length, body]);
}

/** An answer of PostgreSQL. */
export type Answer = {
  /** Undefined: PostgreSQL is not ready for the next query. `I`: no transaction is open. */
  readonly status: string | undefined;
  /** Fields of the last error, by type: `M` is the message, `P` the position in the text of the query. */
  readonly error: ReadonlyMap<string, string> | undefined;
};

export function answerIn(output: Buffer): Answer {
  let status: string | undefined;
  let error: ReadonlyMap<string, string> | undefined;
  let at = 0;
  while (at + headBytes <= output.length) {
    const type = output.toString('latin1', at, at + 1);
    const end = at + 1 + output.readInt32BE(at + 1);
    status = type === 'Z' ? output.toString('latin1', at + headBytes, end) : undefined;
    if (type === 'E') error = fieldsOf(output.toString('utf8', at + headBytes, end));
    at = end;
  }
  return { status, error };
}

function fieldsOf(text: string): ReadonlyMap<string, string> {
  return new Map(text.split('\0').map((field) => [field.slice(0, 1), field.slice(1)]));
}
