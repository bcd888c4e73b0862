/**
 * Reads the log of one container as the API server sends it with `timestamps`: each line begins with its time. Passes on the
 * bytes without times. After a lost connection it skips the lines that are sent again.
 */
export type TimedLines = {
  /** Call it at the start of each connection. */
  begin(): void;
  push(chunk: Buffer): void;
  /** Call it when the next connection may start after the current line. */
  leave(): void;
  /** Time of the last line as the API server wrote it. Undefined: no line yet. */
  readonly lastTime: string | undefined;
};

const [space, newline] = [0x20, 0x0a];

export function createTimedLines(
  /** `at`: time of the line in ms. */
  onOutput: (at: number, chunk: Buffer) => void,
  /** Lines up to this time were read earlier, in ms. */
  readUntil = Number.NEGATIVE_INFINITY,
): TimedLines {
  /** Time of the last complete line, and the number of complete lines with that time. */
  let complete = { time: '', lines: 0 };
  /** The current line: its time as far as it was received, and the number of bytes passed on. */
  let line = { time: '', isInTime: true, passed: 0 };
  /** How many lines with `complete.time` this connection sent again, and how many bytes of the next line. */
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
    // Also skips the kubelet's own messages, which have no time: that it cannot read the log.
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
