import styles from './audit.module.css';
import { reasonInWords } from './event-words.ts';

/** In words where there are some; an error has its code, which is what one searches for. */
export function Reason({ of: reason }: { of: string | null }) {
  if (reason === null) return null;
  const words = reasonInWords(reason);
  if (words === '') return null;
  return words === undefined ? (
    <code className={styles['reason']}>{reason}</code>
  ) : (
    <span className={styles['reason']}>{words}</span>
  );
}
