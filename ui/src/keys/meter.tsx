import { Progress } from '@mantine/core';
import styles from './meter.module.css';

/** How much of what the policy allows is in use. Revoked and expired keys do not count. */
export function Meter({ count, limit, hasPair }: { count: number; limit: number; hasPair: boolean }) {
  const color = count >= limit ? 'red' : 'blue';
  return (
    <div className={styles['meter']}>
      <span id="active-keys">
        <b>{count}</b> of {limit} active keys
        {hasPair && <span className="quiet"> (a key and its replacement count as one)</span>}
      </span>
      <Progress.Root size="sm" aria-hidden="true">
        <Progress.Section value={Math.min(100, (count / limit) * 100)} color={color} withAria={false} />
      </Progress.Root>
    </div>
  );
}
