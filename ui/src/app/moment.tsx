import { Tooltip } from '@mantine/core';
import { exactly, fromNow } from './time.ts';

/** A moment as people say it; the exact one is a pointer or a touch away. */
export function Moment({ at, now }: { at: string; now: number }) {
  const ms = Date.parse(at);
  return (
    <Tooltip label={exactly(ms)}>
      <time dateTime={at}>{fromNow(ms, now)}</time>
    </Tooltip>
  );
}
