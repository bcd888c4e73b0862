import { Alert, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { AddToClient } from '../../agents/add-to-client.tsx';
import { SessionTable } from '../../agents/session-table.tsx';
import { NoMatch } from '../../lists/empty.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import { Problem } from '../../shell/problem.tsx';
import { myAgentSessions } from '../queries.ts';
import { AccessCard } from './access.tsx';
import { WaitingCalls } from '../../agents/waiting-calls.tsx';
import { waitingApprovals } from '../../api/queries.ts';
import { useNow } from '../../shell/now.ts';

const route = getRouteApi('/settings/agents');

/** Sessions of the user's agents. */
export function AgentsPage() {
  const { page = 1 } = route.useSearch();
  const found = useQuery(myAgentSessions({ page, limit: 20 }));
  return (
    <>
      <PageHead
        title="My agents"
        intro="Coding assistants and other agents that act for you, and what they did. You end their access in Connected clients."
      />
      <Waiting />
      <AccessCard />
      <AddToClient />
      <Title order={2} size="h4" mb="sm">
        Sessions
      </Title>
      <List what="sessions" found={found} empty={<NoMatch>No agent has called a tool for you yet.</NoMatch>}>
        {(all) => (
          <SessionTable home="/settings/agents/sessions" sessions={all} isStale={found.isPlaceholderData} />
        )}
      </List>
    </>
  );
}

/** Calls of the user's agents that wait for approval; nothing while there are none, and a note while MCP is off. */
function Waiting() {
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
