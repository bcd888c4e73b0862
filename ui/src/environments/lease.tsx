import { Moment } from '../shell/moment.tsx';
import { type Environment, isEnding } from './environment-words.ts';
import styles from '../shell/page.module.css';

const dayMs = 86_400_000;

/** When its lease ends. In its last day, text and colour mark it. */
export function Lease({ of: environment, now }: { of: Environment; now: number }) {
  const { deletedAt, expiresAt } = environment;
  if (deletedAt !== null)
    return (
      <span className="quiet">
        ended <Moment at={deletedAt} now={now} />
      </span>
    );
  if (isEnding(environment)) return <span className="quiet">ending</span>;
  const left = Date.parse(expiresAt) - now;
  return (
    <span className={styles['lease']} data-urgent={left < dayMs}>
      {left <= 0 ? 'ended' : 'ends'} <Moment at={expiresAt} now={now} isAhead />
      {left > 0 && left < dayMs && <b>Soon</b>}
    </span>
  );
}
