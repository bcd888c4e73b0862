import type { Schemas } from '../../api/contract.ts';
import { plainTextOf } from './ansi.ts';

export type LogLine = Schemas['LogLine'] & {
  /** Counts from 1 for the reader, also when earlier lines were dropped. */
  readonly number: number;
};

/** Lines that a page keeps. A browser shows no more rows than that well, and a log has a limit of its own. */
const maxKept = 100_000;

/** What was read of a log. It changes only by new lines at its end, and by old ones that are dropped. */
export type LogLines = { readonly lines: readonly LogLine[]; readonly dropped: number };

export const noLines: LogLines = { lines: [], dropped: 0 };

export function withLines(before: LogLines, more: readonly Schemas['LogLine'][], max = maxKept): LogLines {
  const first = before.dropped + before.lines.length + 1;
  const all = [...before.lines, ...more.map((line, at) => ({ ...line, number: first + at }))];
  const excess = Math.max(0, all.length - max);
  return { lines: excess === 0 ? all : all.slice(excess), dropped: before.dropped + excess };
}

/** Indexes of the lines that hold this text, whatever its case. */
export function matchesIn(lines: readonly LogLine[], search: string): number[] {
  const wanted = search.toLowerCase();
  if (wanted === '') return [];
  return lines.flatMap(({ text }, at) => (plainTextOf(text).toLowerCase().includes(wanted) ? [at] : []));
}

/** Which rows a window over equally high rows shows, with a few more on either side: [first, behind the last]. */
export function rowsShown(
  count: number,
  { top, height, rowHeight }: { readonly top: number; readonly height: number; readonly rowHeight: number },
): readonly [number, number] {
  const beside = 20;
  const first = Math.floor(top / rowHeight) - beside;
  const last = Math.ceil((top + height) / rowHeight) + beside;
  return [Math.max(0, Math.min(first, count)), Math.max(0, Math.min(last, count))];
}

/** As a file: the time, the service, the stream if it is not the usual one, and the text without colours. */
export function fileOf(lines: readonly LogLine[]): string {
  return lines
    .map(({ at, service, stream, text }) =>
      [at, service, ...(stream === 'stdout' ? [] : [`[${stream}]`]), plainTextOf(text)].join(' '),
    )
    .join('\n');
}
