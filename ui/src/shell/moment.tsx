import { Tooltip } from '@mantine/core';
import { aheadFromNow, exactly, fromNow, toTheSecond } from './time.ts';

type MomentProps = {
  readonly at: string;
  readonly now: number;
  /** A moment in the future, such as an expiry. */
  readonly isAhead?: boolean;
  /** Shows the exact time with seconds. */
  readonly isToSecond?: boolean;
};

/** A relative time. Hovering or touching it shows the exact time. */
export function Moment({ at, now, isAhead = false, isToSecond = false }: MomentProps) {
  const ms = Date.parse(at);
  return (
    <Tooltip label={isToSecond ? toTheSecond(ms) : exactly(ms)}>
      <time dateTime={at}>{isAhead ? aheadFromNow(ms, now) : fromNow(ms, now)}</time>
    </Tooltip>
  );
}
