import styles from './audit.module.css';
import { reasonInWords } from './event-words.ts';

/** The label of a reason. An error keeps its code, which people search for. */
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
