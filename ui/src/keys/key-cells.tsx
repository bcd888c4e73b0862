import { Badge } from '@mantine/core';
import { Moment } from '../shell/moment.tsx';
import { accessFrom, touchesOnlySites } from './new/access.ts';
import { endOf, type Key } from './key-words.ts';
import styles from './key-table.module.css';

/** Cells of every list of keys. */
export function Repositories({ of: { scopes, repositories: reach } }: { of: Key }) {
  if (touchesOnlySites(accessFrom(scopes, scopes))) return <span className="quiet">Sites only</span>;
  if (reach.mode === 'all') return <span className={styles['broad']}>All repositories</span>;
  const { repositories: names } = reach;
  if (names.length === 0) return <span className="quiet">None left</span>;
  if (names.length === 1) return <span className={styles['repository']}>{names[0]}</span>;
  return (
    <details className={styles['more']}>
      <summary>{names.length} repositories</summary>
      <ul>
        {names.map((name) => (
          <li key={name}>{name}</li>
        ))}
      </ul>
    </details>
  );
}

/** Two keys of one rotation, which often have the same name, until the old one expires. */
export function Rotation({
  of: { replacedBy, replaces, status },
  among,
}: {
  of: Key;
  among: readonly Key[];
}) {
  if (status !== 'active') return null;
  const isPaired = among.some((other) => other.id === replaces && other.status === 'active');
  return (
    <>
      {replacedBy !== null && <Badge color="blue">Being replaced</Badge>}
      {isPaired && <Badge color="blue">Replaces {replaces}</Badge>}
    </>
  );
}

export function LastUsed({ of: { lastUsedAt }, now }: { of: Key; now: number }) {
  return lastUsedAt === null ? <span className="quiet">Never</span> : <Moment at={lastUsedAt} now={now} />;
}

type EndProps = { of: Key; now: number; reader: Parameters<typeof endOf>[1] };

/** When it expires or expired, below its state. */
export function End({ of: key, now, reader }: EndProps) {
  const { word, at } = endOf(key, reader);
  if (at === null) return null;
  return (
    <span className={styles['end']}>
      {word} <Moment at={at} now={now} isAhead />
    </span>
  );
}
