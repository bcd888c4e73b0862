import type { ReactNode } from 'react';
import styles from './tiles.module.css';

/** A row of counts. Each tile is a link. */
export function Tiles({ label, children }: { label?: string; children: ReactNode }) {
  return (
    <ul className={styles['tiles']} aria-label={label}>
      {children}
    </ul>
  );
}

/** The number is absent until it is known. */
export function Tile({ number, children }: { number: number | undefined; children: ReactNode }) {
  return (
    <li>
      {number !== undefined && <b>{number.toLocaleString()}</b>}
      {children}
    </li>
  );
}
