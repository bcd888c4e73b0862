import { Badge } from '@mantine/core';
import { type KeyStanding, standingWords } from './key-words.ts';
import styles from './key-table.module.css';

export function Standing({ of }: { of: KeyStanding }) {
  const [label, color] = standingWords[of];
  return (
    <Badge className={styles['badge']} variant="light" color={color} tt="none" fw={600}>
      {label}
    </Badge>
  );
}

export function Scopes({ of: scopes }: { of: readonly string[] }) {
  return (
    <span className={styles['scopes']}>
      {scopes.map((scope) => (
        <code key={scope} className={styles['scope']}>
          {scope}
        </code>
      ))}
    </span>
  );
}
