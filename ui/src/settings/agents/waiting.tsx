import { Alert, Button, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { wordsOf } from '../../agents/tools.ts';
import type { Schemas } from '../../api/contract.ts';
import { waitingApprovals } from '../../api/queries.ts';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import styles from './agents.module.css';

/** Calls of one's agents that wait for an answer; nothing while there are none, and a note while MCP is off. */
export function Waiting() {
  const { data, error, refetch } = useQuery({ ...waitingApprovals, staleTime: 0 });
  const now = useNow();
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return null;
  const { isOn, approvals } = data;
  if (!isOn)
    return (
      <Alert color="yellow" title="MCP is off" mb="md">
        No agent can act for you. Ask an administrator to turn it on. What your agents did stays listed here.
      </Alert>
    );
  return <WaitingCalls of={approvals} now={now} />;
}

type CallsProps = { readonly of: readonly Schemas['AgentApproval'][]; readonly now: number };

export function WaitingCalls({ of: approvals, now }: CallsProps) {
  if (approvals.length === 0) return null;
  return (
    <section className={styles['card']} aria-labelledby="waiting">
      <Title order={2} size="h4" id="waiting">
        Waiting for you
      </Title>
      <ul className={styles['waiting']}>
        {approvals.map(({ id, tool, clientId, requestedAt }) => (
          <li key={id}>
            <div>
              <code>{tool}</code> {wordsOf(tool)}
              <span className={styles['who']}>
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
