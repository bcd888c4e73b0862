import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../api/contract.ts';
import { countOf } from '../shell/count.ts';
import { Moment } from '../shell/moment.tsx';
import { useNow } from '../shell/now.ts';
import styles from './agents.module.css';

/** An administrator reads names and sizes of arguments, the person their values. */
type Call = Schemas['AgentCall'] | Schemas['ReviewedAgentCall'];

const steps = {
  upload_offered: 'upload address given',
  upload_received: 'upload received',
} as const;

/** The calls of a session, in the order of their time. */
export function CallTimeline({ calls }: { calls: readonly Call[] }) {
  const now = useNow();
  return (
    <ol className={styles['timeline']} start={calls[0]?.number ?? 1}>
      {calls.map((call) => (
        <li key={call.number} value={call.number} data-refused={call.code !== null}>
          <div className={styles['call']}>
            <code>{call.tool}</code>
            {call.code === null ? (
              <span className="quiet">{call.step === null ? 'answered' : steps[call.step]}</span>
            ) : (
              <span className={styles['refused']}>
                refused: <code>{call.code}</code>
              </span>
            )}
          </div>
          <Arguments of={call.arguments} />
          <span className={styles['when']}>
            <Moment at={call.at} now={now} isToSecond /> · {call.durationMs.toLocaleString()} ms
            {call.approvalId !== null && (
              <>
                {' · '}approval <code>{call.approvalId}</code>
              </>
            )}
            {'requestId' in call && call.requestId !== null && (
              <>
                {' · '}
                <Anchor
                  inherit
                  renderRoot={(props) => (
                    <Link to="/admin/audit" search={{ requestId: call.requestId ?? '' }} {...props} />
                  )}
                >
                  audit events
                </Anchor>
              </>
            )}
          </span>
        </li>
      ))}
    </ol>
  );
}

function Arguments({ of: sent }: { of: Call['arguments'] }) {
  const all = Array.isArray(sent)
    ? sent.map(({ name, characters }): [string, string] => [name, countOf(characters, 'character')])
    : Object.entries(sent).map(([name, value]): [string, string] => [name, shortened(value)]);
  if (all.length === 0) return null;
  return (
    <dl className={styles['arguments']}>
      {all.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <bdi>{value}</bdi>
          </dd>
        </div>
      ))}
    </dl>
  );
}

const shownCharacters = 500;

function shortened(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length <= shownCharacters ? text : `${text.slice(0, shownCharacters)}…`;
}
