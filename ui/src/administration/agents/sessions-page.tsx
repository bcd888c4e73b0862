import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { SessionTable } from '../../agents/session-table.tsx';
import { NoMatch, NoMatchLine } from '../../lists/empty.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import { Pages } from '../../lists/pages.tsx';
import { TableLoading } from '../../lists/table.tsx';
import { Problem } from '../../shell/problem.tsx';
import { agentSessions } from '../queries.ts';
import { TextLink } from '../text-link.tsx';

const route = getRouteApi('/administration/admin/agents/sessions');

/** Sessions of everyone's agents. */
export function SessionsPage() {
  const navigate = route.useNavigate();
  const { page = 1 } = route.useSearch();
  const found = useQuery(agentSessions({ page, limit: 50 }));
  const all = found.data?.data ?? [];
  return (
    <>
      <TextLink to="/admin/agents" size="sm">
        ← Agents
      </TextLink>
      <PageHead
        title="Agent sessions"
        intro="What everyone’s agents did. A session is the calls of one client for one person, until 30 minutes pass without a call."
      />
      {found.isPending && <TableLoading what="sessions" />}
      {found.error !== null && <Problem error={found.error} onRetry={() => void found.refetch()} />}
      {found.data !== undefined && all.length === 0 && (
        <NoMatch>
          <NoMatchLine>No agent has called a tool yet.</NoMatchLine>
        </NoMatch>
      )}
      {all.length > 0 && (
        <SessionTable home="/admin/agents/sessions" sessions={all} isStale={found.isPlaceholderData} />
      )}
      <Pages
        page={page}
        total={found.data?.metadata.pagination.total ?? 0}
        onChange={(next) => void navigate({ search: next > 1 ? { page: next } : {}, replace: true })}
      />
    </>
  );
}
