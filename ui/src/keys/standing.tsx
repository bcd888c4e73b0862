import { Badge } from '@mantine/core';
import { type KeyStanding, standingWords } from './key-words.ts';
import styles from './key-table.module.css';
import { withReads } from './rights.ts';

export function Standing({ of }: { of: KeyStanding }) {
  const [label, color] = standingWords[of];
  return <Badge color={color}>{label}</Badge>;
}

/** The scopes of a key. A write stands for the read that it includes, which is only counted. */
export function Scopes({ of: scopes }: { of: readonly string[] }) {
  const reads = withReads(scopes).filter(
    (scope) => scope.endsWith(':read') && scopes.includes(scope.replace(':read', ':write')),
  );
  return (
    <span className={styles['scopes']}>
      {scopes
        .filter((scope) => !reads.includes(scope))
        .map((scope) => (
          <code key={scope} className={styles['scope']}>
            {scope}
          </code>
        ))}
      {reads.length > 0 && (
        <span className={styles['included']} title={`Write includes read: ${reads.join(', ')}`}>
          +{reads.length}
          <span className="unseen"> (includes {reads.join(', ')})</span>
        </span>
      )}
    </span>
  );
}
