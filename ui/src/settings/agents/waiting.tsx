import { Alert } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { WaitingCalls } from '../../agents/waiting-calls.tsx';
import { waitingApprovals } from '../../api/queries.ts';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';

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
        Agents cannot act for you. Ask an administrator to turn MCP on. Past sessions are listed below.
      </Alert>
    );
  return <WaitingCalls of={approvals} now={now} />;
}
