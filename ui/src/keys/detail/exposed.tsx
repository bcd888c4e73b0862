import { Alert, Group } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Moment } from '../../shell/moment.tsx';
import type { KeyHome } from '../key-home.ts';
import { isOver, type Key, standingOf } from '../key-words.ts';
import { timelineAt } from '../queries.ts';

type ExposedProps = {
  readonly of: Key;
  readonly now: number;
  readonly home: KeyHome;
  /** Buttons that end the danger. */
  readonly children: ReactNode;
};

/** Warns above everything else that a working key has leaked. It reads the timeline that the page shows below. */
export function Exposed({ of: key, now, home, children }: ExposedProps) {
  const { data } = useInfiniteQuery(timelineAt(home, key.id));
  const exposure = data?.pages.flatMap((page) => page.data).find(({ event }) => event === 'api_key.exposed');
  if (exposure === undefined || isOver(standingOf(key, now))) return null;
  return (
    <Alert color="red" mb="md" title="This key was exposed">
      It was seen where no key may appear, such as in an address, <Moment at={exposure.time} now={now} />.
      Other people may have read it. Replace it, and revoke it.
      <Group gap="xs" mt="sm">
        {children}
      </Group>
    </Alert>
  );
}
