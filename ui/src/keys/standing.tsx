import { Badge } from '@mantine/core';
import { type KeyStanding, standingWords } from './key-words.ts';
import styles from './key-table.module.css';
import { withReads } from './rights.ts';

export function Standing({ of }: { of: KeyStanding }) {
  const [label, color] = standingWords[of];
  return <Badge color={color}>{label}</Badge>;
}

/** What was given, and in grey the reads that come with a write. */
export function Scopes({ of: scopes }: { of: readonly string[] }) {
  const included = withReads(scopes).filter((scope) => !scopes.includes(scope));
  return (
    <span className={styles['scopes']}>
      {scopes.map((scope) => (
        <code key={scope} className={styles['scope']}>
          {scope}
        </code>
      ))}
      {included.map((scope) => (
        <code key={scope} className={styles['included']} title="Included in write">
          {scope}
          <span className="unseen"> (included)</span>
        </code>
      ))}
    </span>
  );
}
