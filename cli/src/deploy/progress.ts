import type { Io } from '../core/io.ts';

/** A line that shows the bytes sent, the rate and the time left; only on a terminal. */
export type Progress = {
  add(bytes: number): void;
  /** Removes the line. */
  end(): void;
};

const everyMs = 200;

export function progressOf(
  total: number,
  { now, err, errIsTerminal }: Pick<Io, 'now' | 'err' | 'errIsTerminal'>,
): Progress {
  const startedAt = now();
  let sent = 0;
  let shownAt = startedAt;
  return {
    add(bytes) {
      sent += bytes;
      const at = now();
      if (!errIsTerminal || at - shownAt < everyMs) return;
      shownAt = at;
      err(`\r\u001b[K${progressLine(sent, total, at - startedAt)}`);
    },
    end() {
      if (shownAt !== startedAt) err('\r\u001b[K');
    },
  };
}

export function progressLine(sent: number, total: number, ms: number): string {
  const perSecond = (sent / ms) * 1000;
  const secondsLeft = Math.ceil(Math.max(0, total - sent) / perSecond);
  return `${sizeText(sent)} of ${sizeText(total)}, ${sizeText(perSecond)}/s, ${secondsLeft} s left`;
}

export function sizeText(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB'];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(bytes, 1)) / 10)));
  return `${power === 0 ? Math.round(bytes) : (bytes / 1024 ** power).toFixed(1)} ${units[power]}`;
}
