import type { ReactNode } from 'react';
import styles from './tiles.module.css';

/** Counts, each the link to what it counts. */
export function Tiles({ label, children }: { label?: string; children: ReactNode }) {
  return (
    <ul className={styles['tiles']} aria-label={label}>
      {children}
    </ul>
  );
}

/** Without a number while it is not known. */
export function Tile({ number, children }: { number: number | undefined; children: ReactNode }) {
  return (
    <li>
      {number !== undefined && <b>{number.toLocaleString()}</b>}
      {children}
    </li>
  );
}
