import type { ReactNode } from 'react';
import { Moment } from '../shell/moment.tsx';
import { useNow } from '../shell/now.ts';
import styles from './agents.module.css';
import { type Session, StateBadge } from './session-table.tsx';

/** Facts above a timeline. `person`: a link to the person, for administrators. */
export function SessionFacts({ of: session, person }: { of: Session; person?: ReactNode }) {
  const now = useNow();
  return (
    <dl className={styles['facts']}>
      <div>
        <dt>Client</dt>
        <dd>
          <code>{session.clientId}</code>
        </dd>
      </div>
      <div>
        <dt>Definition</dt>
        <dd>{session.definition === null ? 'None: the agent only reads' : session.definition.name}</dd>
      </div>
      {person !== undefined && (
        <div>
          <dt>Person</dt>
          <dd>{person}</dd>
        </div>
      )}
      <div>
        <dt>State</dt>
        <dd>
          <StateBadge isOpen={session.isOpen} />
        </dd>
      </div>
      <div>
        <dt>Calls</dt>
        <dd>{session.calls.toLocaleString()}</dd>
      </div>
      <div>
        <dt>Started</dt>
        <dd>
          <Moment at={session.startedAt} now={now} isToSecond />
        </dd>
      </div>
      <div>
        <dt>Last call</dt>
        <dd>
          <Moment at={session.lastCallAt} now={now} isToSecond />
        </dd>
      </div>
      {session.endedAt !== null && (
        <div>
          <dt>Access ended</dt>
          <dd>
            <Moment at={session.endedAt} now={now} isToSecond />
          </dd>
        </div>
      )}
    </dl>
  );
}
