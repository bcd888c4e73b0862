import { Tooltip } from '@mantine/core';
import { aheadFromNow, exactly, fromNow, toTheSecond } from './time.ts';

type MomentProps = {
  readonly at: string;
  readonly now: number;
  /** Something that is to come, such as an end. */
  readonly isAhead?: boolean;
  /** The exact one with its seconds. */
  readonly isToSecond?: boolean;
};

/** A moment as people say it; the exact one is a pointer or a touch away. */
export function Moment({ at, now, isAhead = false, isToSecond = false }: MomentProps) {
  const ms = Date.parse(at);
  return (
    <Tooltip label={isToSecond ? toTheSecond(ms) : exactly(ms)}>
      <time dateTime={at}>{isAhead ? aheadFromNow(ms, now) : fromNow(ms, now)}</time>
    </Tooltip>
  );
}
