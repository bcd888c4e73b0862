import { trimBlanks } from '../../core/blanks.ts';

/** The head of an answer: headers as names and values in turn, as they were sent. */
export type AnswerHead = {
  readonly status: number;
  readonly reason: string;
  readonly rawHeaders: readonly string[];
};

/** Its message is a sentence for people. */
export class UnreadableAnswer extends Error {}

/** Bytes of all heads, interim ones included, and of the trailers. */
const maxHeadBytes = 65_536;
const maxHeaders = 500;
/** Bytes of the line before a chunk. */
const maxLineBytes = 4_096;

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: ([\t\x20-\x7e\x80-\xff]*))?$/;
// No two parts match the same character: a long run of blanks would be scanned again from each of them.
const fieldLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)$/;
const chunkLine = /^([0-9a-f]{1,12})(?:;[\t\x20-\x7e\x80-\xff]*)?$/i;

type State = 'head' | 'length' | 'until close' | 'chunk size' | 'chunk' | 'chunk end' | 'trailers' | 'over';

/**
 * Reads one answer to one request (RFC 9112). It takes one form of each thing: lines end with CRLF, a length is sent once,
 * no header is folded, `chunked` is the only coding. A process that sends another form may mean two different answers by
 * it, so everything else is an error.
 */
export class AnswerReader {
  /** Undefined until it was read. Interim answers (1xx) are passed over, except 101 to a request that asked for it. */
  head: AnswerHead | undefined;
  /** Bytes after a head with status 101, or after the end of the answer. */
  rest: Buffer = empty;
  readonly #asked: { readonly method: string; readonly isUpgrade: boolean };
  #state: State = 'head';
  /** Bytes of a head or a line that has not ended. */
  #begun: Buffer = empty;
  #left = 0;
  #headBytes = 0;
  #isKept = true;

  constructor(asked: { readonly method: string; readonly isUpgrade: boolean }) {
    this.#asked = asked;
  }

  get isOver(): boolean {
    return this.#state === 'over';
  }

  /** Whether the connection may carry another request. */
  get isKept(): boolean {
    return this.isOver && this.#isKept && this.rest.length === 0;
  }

  /**
   * The pieces of the body in these bytes: views, no copies.
   * @throws UnreadableAnswer when they are no answer; the reader cannot be used after that
   */
  read(chunk: Buffer): Buffer[] {
    const pieces: Buffer[] = [];
    let rest = this.#begun.length === 0 ? chunk : Buffer.concat([this.#begun, chunk]);
    this.#begun = empty;
    while (rest.length > 0 && !this.isOver) {
      const used = this.#step(rest, pieces);
      if (used === 0) {
        // A copy: these bytes are not the reader's to keep.
        this.#begun = Buffer.from(rest);
        return pieces;
      }
      rest = rest.subarray(used);
    }
    if (rest.length > 0) this.rest = rest;
    return pieces;
  }

  /** The process ended its side of the connection. */
  end(): void {
    if (this.#state === 'until close') this.#state = 'over';
    this.#isKept = false;
  }

  /** The number of bytes that were used; 0 = more are needed. */
  #step(rest: Buffer, pieces: Buffer[]): number {
    if (this.#state === 'head') return this.#readHead(rest);
    if (this.#state === 'until close') {
      pieces.push(rest);
      return rest.length;
    }
    if (this.#state !== 'length' && this.#state !== 'chunk') return this.#readLine(rest);
    const piece = rest.length > this.#left ? rest.subarray(0, this.#left) : rest;
    pieces.push(piece);
    this.#left -= piece.length;
    if (this.#left === 0) this.#state = this.#state === 'length' ? 'over' : 'chunk end';
    return piece.length;
  }

  #readHead(rest: Buffer): number {
    const end = rest.indexOf('\r\n\r\n', 0, 'latin1');
    const bytes = end < 0 ? rest.length : end + 4;
    if (this.#headBytes + bytes > maxHeadBytes)
      throw new UnreadableAnswer('The head of the answer is too large.');
    if (end < 0) return 0;
    this.#headBytes += bytes;
    const [first = '', ...lines] = rest.toString('latin1', 0, end).split('\r\n');
    if (lines.length > maxHeaders) throw new UnreadableAnswer('The answer has too many headers.');
    const [, minor, digits, reason = ''] = statusLine.exec(first) ?? [];
    if (digits === undefined) throw new UnreadableAnswer('The answer begins with no status.');
    const status = Number(digits);
    if (status < 200 && status !== 101) return bytes;
    const rawHeaders: string[] = [];
    for (const line of lines) {
      const [, name, value] = fieldLine.exec(line) ?? [];
      if (name === undefined || value === undefined)
        throw new UnreadableAnswer('The answer has a line that is no header.');
      rawHeaders.push(name, trimBlanks(value));
    }
    this.#isKept = minor === '1';
    this.#state = this.#stateAfter(status, rawHeaders);
    this.head = { status, reason, rawHeaders };
    return bytes;
  }

  #stateAfter(status: number, rawHeaders: readonly string[]): State {
    const { length, isChunked } = this.#framing(rawHeaders);
    if (status === 101) {
      if (!this.#asked.isUpgrade)
        throw new UnreadableAnswer('The answer switches to a protocol that was not asked for.');
      return 'over';
    }
    // RFC 9112 section 6.3.
    if (this.#asked.method === 'HEAD' || status === 204 || status === 304 || length === 0) return 'over';
    if (isChunked) return 'chunk size';
    if (length === undefined) return 'until close';
    this.#left = length;
    return 'length';
  }

  #framing(rawHeaders: readonly string[]): { length: number | undefined; isChunked: boolean } {
    let said: { name: string; value: string } | undefined;
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const name = rawHeaders[at]?.toLowerCase() ?? '';
      const value = rawHeaders[at + 1] ?? '';
      if (name === 'connection') this.#isKept &&= !/(?:^|,)\s*close\s*(?:,|$)/i.test(value);
      if (name !== 'content-length' && name !== 'transfer-encoding') continue;
      if (said !== undefined) throw new UnreadableAnswer('The answer says its length twice.');
      said = { name, value };
    }
    if (said?.name !== 'transfer-encoding') {
      if (said !== undefined && !/^\d{1,15}$/.test(said.value))
        throw new UnreadableAnswer('The length of the answer is no number.');
      return { length: said && Number(said.value), isChunked: false };
    }
    if (said.value.toLowerCase() !== 'chunked')
      throw new UnreadableAnswer('The answer has a coding other than chunked.');
    return { length: undefined, isChunked: true };
  }

  /** A line of the chunked coding (RFC 9112 section 7.1). */
  #readLine(rest: Buffer): number {
    const end = rest.indexOf('\r\n', 0, 'latin1');
    if (end > maxLineBytes || (end < 0 && rest.length > maxLineBytes))
      throw new UnreadableAnswer('A line between two chunks is too long.');
    if (end < 0) return 0;
    const line = rest.toString('latin1', 0, end);
    if (this.#state === 'chunk size') {
      const [, digits] = chunkLine.exec(line) ?? [];
      if (digits === undefined) throw new UnreadableAnswer('The size of a chunk is no number.');
      this.#left = Number.parseInt(digits, 16);
      this.#state = this.#left === 0 ? 'trailers' : 'chunk';
    } else if (this.#state === 'chunk end') {
      if (line !== '') throw new UnreadableAnswer('A chunk is longer than it says.');
      this.#state = 'chunk size';
    } else if (line === '') {
      this.#state = 'over';
    } else {
      // Trailers are dropped: the gateway passes none on.
      this.#headBytes += end + 2;
      if (this.#headBytes > maxHeadBytes)
        throw new UnreadableAnswer('The trailers of the answer are too large.');
      if (!fieldLine.test(line)) throw new UnreadableAnswer('The answer has a line that is no trailer.');
    }
    return end + 2;
  }
}

const empty: Buffer = Buffer.alloc(0);
