import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { SessionTable } from '../../agents/session-table.tsx';
import { NoMatch } from '../../lists/empty.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import { agentSessions } from '../queries.ts';
import { TextLink } from '../text-link.tsx';

const route = getRouteApi('/administration/admin/agents/sessions');

/** Sessions of everyone's agents. */
export function SessionsPage() {
  const { page = 1 } = route.useSearch();
  const found = useQuery(agentSessions({ page, limit: 50 }));
  return (
    <>
      <TextLink to="/admin/agents" size="sm">
        ← Agents
      </TextLink>
      <PageHead
        title="Agent sessions"
        intro="What everyone’s agents did. A session is the calls of one client for one person, until 30 minutes pass without a call."
      />
      <List what="sessions" found={found} empty={<NoMatch>No agent has called a tool yet.</NoMatch>}>
        {(all) => (
          <SessionTable home="/admin/agents/sessions" sessions={all} isStale={found.isPlaceholderData} />
        )}
      </List>
    </>
  );
}
