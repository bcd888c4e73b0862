import { Button, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../api/contract.ts';
import { Moment } from '../shell/moment.tsx';
import styles from './agent-list.module.css';
import { wordsOf } from './tools.ts';

type CallsProps = { readonly of: readonly Schemas['AgentApproval'][]; readonly now: number };

/** Calls of the user's agents that wait for approval; nothing while there are none. */
export function WaitingCalls({ of: approvals, now }: CallsProps) {
  if (approvals.length === 0) return null;
  return (
    <section className={styles['card']} aria-labelledby="waiting">
      <Title order={2} size="h4" id="waiting">
        Waiting for you
      </Title>
      <ul className={styles['list']}>
        {approvals.map(({ id, tool, clientId, requestedAt }) => (
          <li key={id}>
            <div>
              <code>{tool}</code> {wordsOf(tool)}
              <span className="subline">
                Client <code>{clientId}</code> · asked <Moment at={requestedAt} now={now} />
              </span>
            </div>
            <Button
              size="xs"
              aria-label={`Review the call of ${tool}`}
              renderRoot={(props) => <Link to="/settings/agents/approvals/$id" params={{ id }} {...props} />}
            >
              Review
            </Button>
          </li>
        ))}
      </ul>
    </section>
  );
}
