import type { Schemas } from '../../api/contract.ts';
import { plainTextOf } from './ansi.ts';

export type LogLine = Schemas['LogLine'] & {
  /** Counts from 1 for the reader, also when earlier lines were dropped. */
  readonly number: number;
};

/** Maximum number of lines that a page keeps. Browsers handle more rows badly, and the server limits each log too. */
const maxKept = 100_000;

/** The lines read so far. New lines are appended at the end, and the oldest are dropped. */
export type LogLines = { readonly lines: readonly LogLine[]; readonly dropped: number };

export const noLines: LogLines = { lines: [], dropped: 0 };

export function withLines(before: LogLines, more: readonly Schemas['LogLine'][], max = maxKept): LogLines {
  const first = before.dropped + before.lines.length + 1;
  const all = [...before.lines, ...more.map((line, at) => ({ ...line, number: first + at }))];
  const excess = Math.max(0, all.length - max);
  return { lines: excess === 0 ? all : all.slice(excess), dropped: before.dropped + excess };
}

/** Indexes of the lines that contain this text, ignoring case. */
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

/** Formats lines for a file: time, service, stream if it is not stdout, and text without colours. */
export function fileOf(lines: readonly LogLine[]): string {
  return lines
    .map(({ at, service, stream, text }) =>
      [at, service, ...(stream === 'stdout' ? [] : [`[${stream}]`]), plainTextOf(text)].join(' '),
    )
    .join('\n');
}
