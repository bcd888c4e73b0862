import { Anchor } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { CallTimeline } from '../../agents/call-timeline.tsx';
import { SessionFacts } from '../../agents/session-facts.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import { Pages } from '../../lists/pages.tsx';
import { TableLoading } from '../../lists/table.tsx';
import { Problem } from '../../shell/problem.tsx';
import { myAgentCalls, myAgentSessions } from '../queries.ts';

const route = getRouteApi('/settings/agents/sessions/$id');

/** Every call of one of one's own sessions, with what the agent sent. */
export function SessionPage() {
  const { id } = route.useParams();
  const { page = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const found = useQuery(myAgentCalls(id, { page, limit: 50 }));
  // The facts are in the list; of an old session, its id is enough.
  const { data: newest } = useQuery(myAgentSessions({ limit: 100 }));
  const session = newest?.data.find((one) => one.id === id);
  return (
    <>
      <Anchor component={Link} to="/settings/agents" size="sm">
        ← My agents
      </Anchor>
      <PageHead
        title="Agent session"
        intro={
          <>
            <code>{id}</code>. Contents of files and values of variables are replaced by their sizes.
          </>
        }
      />
      {session !== undefined && <SessionFacts of={session} />}
      {found.isPending && <TableLoading what="calls" />}
      {found.error !== null && <Problem error={found.error} onRetry={() => void found.refetch()} />}
      {found.data !== undefined && <CallTimeline calls={found.data.data} />}
      <Pages
        page={page}
        total={found.data?.metadata.pagination.total ?? 0}
        onChange={(next) => void navigate({ search: next > 1 ? { page: next } : {}, replace: true })}
      />
    </>
  );
}
