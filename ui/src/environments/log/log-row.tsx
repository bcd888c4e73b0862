import { clockTime } from '../../shell/time.ts';
import { plainTextOf, type Run, runsOf } from './ansi.ts';
import type { LogLine } from './log-lines.ts';
import styles from './log.module.css';

type RowProps = {
  readonly of: LogLine;
  readonly hasService: boolean;
  readonly search: string;
  /** The selected match. */
  readonly isCurrent: boolean;
};

/** One line: time, service, stream and text. The output is always shown as text, never as markup. */
export function LogRow({ of: { at, service, stream, text }, hasService, search, isCurrent }: RowProps) {
  return (
    <div className={styles['row']} data-stream={stream} data-current={isCurrent}>
      <time dateTime={at}>{clockTime(Date.parse(at))}</time>
      {hasService && <span className={styles['service']}>{service}</span>}
      <span className={styles['stream']}>{streamWords[stream]}</span>
      <span className={styles['text']}>
        {search === '' ? <Runs of={runsOf(text)} /> : <Marked text={plainTextOf(text)} search={search} />}
      </span>
    </div>
  );
}

const streamWords = { stdout: '', stderr: 'err', postern: 'info' } as const;

function Runs({ of: runs }: { of: readonly Run[] }) {
  return runs.map(({ text, color, isBold }, at) => (
    // Runs never change places.
    // oxlint-disable-next-line react/no-array-index-key
    <span key={at} data-color={color ?? undefined} data-bold={isBold || undefined}>
      {text}
    </span>
  ));
}

/** Without the colours of the terminal, so that the marks are the only ones. */
function Marked({ text, search }: { text: string; search: string }) {
  const parts: { readonly text: string; readonly isMatch: boolean }[] = [];
  const [inText, wanted] = [text.toLowerCase(), search.toLowerCase()];
  // A few letters change their length with their case; then only the line is found, and no part of it is marked.
  if (inText.length !== text.length) return text;
  let from = 0;
  for (let at = inText.indexOf(wanted); at >= 0; at = inText.indexOf(wanted, from)) {
    parts.push({ text: text.slice(from, at), isMatch: false });
    from = at + wanted.length;
    parts.push({ text: text.slice(at, from), isMatch: true });
  }
  parts.push({ text: text.slice(from), isMatch: false });
  return parts.map((part, at) =>
    // Parts never change places.
    // oxlint-disable-next-line react/no-array-index-key
    part.isMatch ? <mark key={at}>{part.text}</mark> : <span key={at}>{part.text}</span>,
  );
}
