import { Button, Modal, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { CallTimeline } from '../../agents/call-timeline.tsx';
import { SessionFacts } from '../../agents/session-facts.tsx';
import { api, unwrap } from '../../api/client.ts';
import { PageHead } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import { Confirm } from '../../shell/confirm.tsx';
import { agentCalls, agentSessions } from '../queries.ts';
import { TextLink } from '../text-link.tsx';

const route = getRouteApi('/administration/admin/agents/sessions/$id');

/** The calls of a session, without what only the person may read. */
export function SessionPage() {
  const { id } = route.useParams();
  const { page = 1 } = route.useSearch();
  const found = useQuery(agentCalls(id, { page, limit: 50 }));
  const { data: only } = useQuery(agentSessions({ id }));
  const session = only?.data.find((one) => one.id === id);
  const [isEnding, setEnding] = useState(false);
  return (
    <>
      <TextLink to="/admin/agents/sessions" size="sm">
        ← Agent sessions
      </TextLink>
      <PageHead
        title="Agent session"
        intro={
          <>
            <code>{id}</code>. Names and sizes of arguments are shown, never their values.
          </>
        }
      >
        {session !== undefined && session.endedAt === null && (
          <Button variant="default" onClick={() => setEnding(true)}>
            End access
          </Button>
        )}
      </PageHead>
      {session !== undefined && (
        <SessionFacts
          of={session}
          person={
            <TextLink to="/admin/users/$id" params={{ id: session.user.id }} inherit>
              <bdi>{session.user.name ?? session.user.id}</bdi>
            </TextLink>
          }
        />
      )}
      <List what="calls" found={found}>
        {(items) => <CallTimeline calls={items} />}
      </List>
      <Modal opened={isEnding} title="End the access of this client?" onClose={() => setEnding(false)}>
        <Confirm
          act={() => unwrap(api.POST('/agents/sessions/{id}/end', { params: { path: { id } } }))}
          said="The access is ended."
          refresh={['admin', 'agents']}
          confirm="End access now"
          keep="Keep it"
          onClose={() => setEnding(false)}
        >
          <Text size="sm">
            <code>{session?.clientId}</code> can no longer act for <bdi>{session?.user.name}</bdi>. It must
            ask that person again.
          </Text>
        </Confirm>
      </Modal>
    </>
  );
}
