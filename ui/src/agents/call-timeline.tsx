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
  confirmation_asked: 'asked the person to confirm',
} as const;

/** The calls of a session in chronological order, each with its result. */
export function CallTimeline({ calls }: { calls: readonly Call[] }) {
  const now = useNow();
  return (
    <ol className={styles['timeline']} start={calls[0]?.number ?? 1}>
      {calls.map((call) => (
        <li key={call.number} value={call.number}>
          <div className={styles['call']}>
            <code>{call.tool}</code>
            <Result of={call} />
          </div>
          <Arguments of={call.arguments} />
          <span className={styles['when']}>
            <Moment at={call.at} now={now} isToSecond /> · {call.durationMs.toLocaleString()} ms
            {call.approvalId !== null && (
              <>
                {' · '}
                <Approval of={call} />
              </>
            )}
            <Subjects of={call} />
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

function Result({ of: { code, result, step } }: { of: Call }) {
  if (step !== null) return <span className="quiet">{steps[step]}</span>;
  if (result === 'done') return <span className="quiet">done</span>;
  if (result === 'asked') return <span className="quiet">asked for approval</span>;
  return (
    <span className={styles['refused']}>
      {result}: <code>{code}</code>
    </span>
  );
}

/** Only the person may open an approval. An administrator reads sizes instead of values. */
function Approval({ of: { approvalId, arguments: sent } }: { of: Call }) {
  if (approvalId === null || Array.isArray(sent))
    return (
      <>
        approval <code>{approvalId}</code>
      </>
    );
  return (
    <Anchor
      inherit
      renderRoot={(props) => (
        <Link to="/settings/agents/approvals/$id" params={{ id: approvalId }} {...props} />
      )}
    >
      approval
    </Anchor>
  );
}

/** Links to what the call is about, and to what it created. */
function Subjects({ of: { arguments: sent, objectId } }: { of: Call }) {
  if (Array.isArray(sent)) return null;
  const isEnvironment = objectId?.startsWith('env_') === true;
  const { siteId = isEnvironment ? null : objectId, environmentId = isEnvironment ? objectId : null } =
    sent as Readonly<Record<string, unknown>>;
  return (
    <>
      {typeof siteId === 'string' && (
        <>
          {' · '}
          <Anchor inherit renderRoot={(props) => <Link to="/sites/$id" params={{ id: siteId }} {...props} />}>
            site
          </Anchor>
        </>
      )}
      {typeof environmentId === 'string' && (
        <>
          {' · '}
          <Anchor
            inherit
            renderRoot={(props) => <Link to="/environments/$id" params={{ id: environmentId }} {...props} />}
          >
            Environment
          </Anchor>
        </>
      )}
    </>
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
