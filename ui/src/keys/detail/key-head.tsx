import { Title } from '@mantine/core';
import type { ReactNode, RefObject } from 'react';
import { isOver, type Key, standingOf } from '../key-words.ts';
import { Standing } from '../standing.tsx';
import styles from './key-page.module.css';

type HeadProps = {
  readonly of: Key;
  readonly now: number;
  /** Receives the focus when the focused element disappears. */
  readonly heading: RefObject<HTMLHeadingElement | null>;
  /** Actions on the key, while it works. */
  readonly children: ReactNode;
};

/** The name of a key as the title of its page. */
export function KeyHead({ of: key, now, heading, children }: HeadProps) {
  return (
    <div className={styles['head']}>
      <div className={styles['name']}>
        <Title order={1} size="h2" tabIndex={-1} ref={heading}>
          <bdi>{key.name}</bdi>
        </Title>
        <p>
          <code className="quiet">{key.id}</code> <Standing of={standingOf(key, now)} />
        </p>
      </div>
      {!isOver(standingOf(key, now)) && <div className={styles['actions']}>{children}</div>}
    </div>
  );
}
