import { useCallback, useLayoutEffect, useRef, useState } from 'react';
import { LogRow } from './log-row.tsx';
import { type LogLine, rowsShown } from './log-lines.ts';
import styles from './log.module.css';

/** Pixels, as in log.module.css: with equally high rows the page knows where each is without measuring it. */
const rowHeight = 20;

type WindowProps = {
  readonly lines: readonly LogLine[];
  readonly hasService: boolean;
  readonly search: string;
  /** Index of the selected match. */
  readonly current: number | undefined;
  readonly isFollowing: boolean;
  readonly onFollow: (isFollowing: boolean) => void;
};

/** The rows near the window, at their places on a page that is as high as all of them. */
export function LogWindow({ lines, hasService, search, current, isFollowing, onFollow }: WindowProps) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 480 });
  const [first, last] = rowsShown(lines.length, { ...view, rowHeight });
  const look = useCallback(() => {
    const element = box.current;
    if (element === null) return;
    const { scrollTop: top, clientHeight: height } = element;
    setView((before) => (before.top === top && before.height === height ? before : { top, height }));
  }, []);

  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    if (isFollowing) element.scrollTop = element.scrollHeight;
    look();
  }, [look, isFollowing, lines]);

  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || current === undefined) return;
    element.scrollTop = current * rowHeight - element.clientHeight / 2;
    look();
  }, [look, current]);

  function scrolled(): void {
    const element = box.current;
    if (element === null) return;
    look();
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < rowHeight;
    if (isAtEnd !== isFollowing) onFollow(isAtEnd);
  }

  return (
    <div
      ref={box}
      className={styles['window']}
      // The keyboard scrolls it.
      // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
      tabIndex={0}
      role="region"
      aria-label="Log"
      onScroll={scrolled}
    >
      <div className={styles['all']} style={{ height: lines.length * rowHeight }}>
        <div className={styles['rows']} style={{ top: first * rowHeight }}>
          {lines.slice(first, last).map((line, at) => (
            <LogRow
              key={line.number}
              of={line}
              hasService={hasService}
              search={search}
              isCurrent={first + at === current}
            />
          ))}
        </div>
      </div>
    </div>
  );
}
