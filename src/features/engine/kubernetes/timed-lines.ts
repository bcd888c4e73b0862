/**
 * Reads the log of one container as the API server sends it with `timestamps`: each line begins with its time. Passes on the
 * bytes without times. When the connection was lost, it continues where it was: lines that are sent again are left out.
 */
export type TimedLines = {
  /** Call it for each connection, with the time from which the log is asked for. */
  begin(): void;
  push(chunk: Buffer): void;
  /** The next connection does not continue here: it may begin behind the line under way. */
  leave(): void;
  /** Of the last line, as the API server wrote it; undefined: none came yet. */
  readonly lastTime: string | undefined;
};

const [space, newline] = [0x20, 0x0a];

export function createTimedLines(
  /** `at`: in ms. */
  onOutput: (at: number, chunk: Buffer) => void,
  /** Lines up to this time were read before, in ms. */
  readUntil = Number.NEGATIVE_INFINITY,
): TimedLines {
  /** Of the last complete line, and how many complete lines have the same time. */
  let complete = { time: '', lines: 0 };
  /** Of the line under way: its time, as far as it came, and the bytes passed on. */
  let line = { time: '', isInTime: true, passed: 0 };
  /** Of this connection: complete lines of `complete.time` that come again, and bytes of the line after them. */
  let again: { lines: number; bytes: number } | undefined;
  let isSkipped = false;
  let skippedBytes = 0;
  let pieces: Buffer[] = [];
  let piecesAt = 0;

  function flush(): void {
    if (pieces.length > 0)
      onOutput(piecesAt, pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces));
    pieces = [];
  }

  function pass(bytes: Buffer): void {
    if (isSkipped || bytes.length === 0) return;
    const fresh = bytes.subarray(Math.min(skippedBytes, bytes.length));
    skippedBytes -= bytes.length - fresh.length;
    if (fresh.length > 0) pieces.push(fresh);
    line.passed += fresh.length;
  }

  function beginLine(): void {
    const at = Date.parse(line.time);
    // Also what the kubelet says itself, without a time: that it cannot read the log.
    isSkipped = !(at > readUntil);
    if (again !== undefined && !isSkipped) {
      isSkipped = line.time < complete.time || (line.time === complete.time && again.lines > 0);
      if (line.time === complete.time && isSkipped) again.lines -= 1;
      if (!isSkipped) {
        skippedBytes = again.bytes;
        line.passed = again.bytes;
        again = undefined;
      }
    }
    if (at !== piecesAt) flush();
    piecesAt = at;
  }

  function endLine(): void {
    if (!isSkipped)
      complete =
        line.time === complete.time
          ? { time: line.time, lines: complete.lines + 1 }
          : { time: line.time, lines: 1 };
    line = { time: '', isInTime: true, passed: 0 };
  }

  return {
    begin() {
      // An earlier connection can have ended in the middle of a line.
      const bytes = again === undefined ? line.passed : again.bytes;
      again = { lines: complete.lines, bytes };
      line = { time: '', isInTime: true, passed: 0 };
      isSkipped = false;
      skippedBytes = 0;
    },
    push(chunk) {
      let rest = chunk;
      while (rest.length > 0) {
        if (line.isInTime) {
          const end = rest.indexOf(space);
          line.time += rest.toString('latin1', 0, end === -1 ? rest.length : end);
          rest = end === -1 ? rest.subarray(rest.length) : rest.subarray(end + 1);
          if (end === -1) break;
          line.isInTime = false;
          beginLine();
        }
        const end = rest.indexOf(newline) + 1;
        pass(end === 0 ? rest : rest.subarray(0, end));
        rest = end === 0 ? rest.subarray(rest.length) : rest.subarray(end);
        if (end > 0) endLine();
      }
      flush();
    },
    leave() {
      line = { time: '', isInTime: true, passed: 0 };
      again = undefined;
    },
    get lastTime() {
      return complete.time === '' ? undefined : complete.time;
    },
  };
}
