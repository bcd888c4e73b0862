import { Anchor, Button, Modal, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { CallTimeline } from '../../agents/call-timeline.tsx';
import { SessionFacts } from '../../agents/session-facts.tsx';
import { api, unwrap } from '../../api/client.ts';
import { PageHead } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import { Confirm } from '../../shell/confirm.tsx';
import { myAgentCalls, myAgentSessions } from '../queries.ts';

const route = getRouteApi('/settings/agents/sessions/$id');

/** The calls of one of the user's sessions, with what the agent sent. */
export function SessionPage() {
  const { id } = route.useParams();
  const { page = 1 } = route.useSearch();
  const found = useQuery(myAgentCalls(id, { page, limit: 50 }));
  const { data: only } = useQuery(myAgentSessions({ id }));
  const session = only?.data.find((one) => one.id === id);
  const [isEnding, setEnding] = useState(false);
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
      >
        {session !== undefined && session.endedAt === null && (
          <Button variant="default" onClick={() => setEnding(true)}>
            End access
          </Button>
        )}
      </PageHead>
      {session !== undefined && <SessionFacts of={session} />}
      <List what="calls" found={found}>
        {(items) => <CallTimeline calls={items} />}
      </List>
      <Modal opened={isEnding} onClose={() => setEnding(false)} title="End the access of this client?">
        <Confirm
          act={() => unwrap(api.POST('/me/agents/sessions/{id}/end', { params: { path: { id } } }))}
          said="The access is ended."
          refresh={['agents']}
          confirm="End access now"
          keep="Keep it"
          onClose={() => setEnding(false)}
        >
          <Text size="sm" mb="sm">
            <code>{session?.clientId}</code> can no longer act for you until you allow it again.
          </Text>
        </Confirm>
      </Modal>
    </>
  );
}
