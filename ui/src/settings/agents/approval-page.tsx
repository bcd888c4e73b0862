import { Alert, Anchor, Button, Group, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { exactJson } from '../../agents/exact-json.ts';
import { destroys, wordsOf } from '../../agents/tools.ts';
import { api, ApiProblem, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { PageHead } from '../../lists/page-head.tsx';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import { useChange } from '../../shell/use-change.ts';
import { myApproval } from '../queries.ts';
import list from '../../agents/agent-list.module.css';
import styles from './agents.module.css';

const route = getRouteApi('/settings/agents/approvals/$id');

type Approval = Schemas['AgentApprovalWithArguments'];

/** One call of an agent that waits for the person: exactly what it would do, and the two answers. */
export function ApprovalPage() {
  const { id } = route.useParams();
  const { data: approval, error } = useQuery(myApproval(id));
  return (
    <>
      <Anchor component={Link} to="/settings/agents" size="sm">
        ← My agents
      </Anchor>
      <PageHead
        title="Approve a call"
        intro="An agent asks to make this call for you. It can make it once, and no other call."
      />
      {approval === undefined && error !== null && isMissing(error) && (
        <Alert color="yellow" title="This approval has expired or does not exist">
          The agent can repeat the call. You then get a new approval request.
        </Alert>
      )}
      {approval === undefined && error !== null && !isMissing(error) && <Problem error={error} />}
      {approval === undefined && error === null && (
        <Skeleton height={240} radius="lg" role="status" aria-label="Loading" />
      )}
      {approval !== undefined && <Asked of={approval} />}
    </>
  );
}

function isMissing(error: unknown): boolean {
  return error instanceof ApiProblem && error.status === 404;
}

function Asked({ of: approval }: { of: Approval }) {
  const now = useNow();
  const { clientId, tool, status, requestedAt, expiresAt } = approval;
  return (
    <section className={list['card']} aria-label="The call">
      <dl className={styles['facts']}>
        <dt>Tool</dt>
        <dd>
          <code>{tool}</code> {wordsOf(tool)}
        </dd>
        <dt>Client</dt>
        <dd>
          <code>{clientId}</code>
        </dd>
        <dt>Asked</dt>
        <dd>
          <Moment at={requestedAt} now={now} isToSecond />
        </dd>
        {(status === 'waiting' || status === 'approved') && (
          <>
            <dt>Expires</dt>
            <dd>
              <Moment at={expiresAt} now={now} isAhead isToSecond />
            </dd>
          </>
        )}
        {approval.arguments !== undefined && (
          <>
            <dt id="arguments">Arguments</dt>
            <dd>
              <pre className={styles['exact']} aria-labelledby="arguments">
                {exactJson(approval.arguments)}
              </pre>
            </dd>
          </>
        )}
      </dl>
      {status === 'waiting' ? <Decision of={approval} /> : <Decided status={status} />}
    </section>
  );
}

function Decision({ of: { id, tool } }: { of: Approval }) {
  const params = { path: { id } };
  const approve = useChange({
    act: () => unwrap(api.POST('/me/agents/approvals/{id}/approve', { params })),
    said: 'The call is approved.',
    refresh: ['agents'],
  });
  const refuse = useChange({
    act: () => unwrap(api.POST('/me/agents/approvals/{id}/refuse', { params })),
    said: 'The call is refused.',
    refresh: ['agents'],
  });
  const error = approve.error ?? refuse.error;
  const isBusy = approve.isBusy || refuse.isBusy;
  return (
    <>
      {error !== undefined && <Problem error={error} />}
      <Group gap="sm" mt="md">
        <Button
          {...(destroys(tool) ? { color: 'red' } : {})}
          loading={approve.isBusy}
          disabled={isBusy}
          onClick={approve.run}
        >
          Approve
        </Button>
        <Button variant="default" loading={refuse.isBusy} disabled={isBusy} onClick={refuse.run}>
          Refuse
        </Button>
      </Group>
    </>
  );
}

const decided = {
  approved: ['green', 'You approved this call', 'The agent can make it once, before it expires.'],
  refused: ['gray', 'You refused this call', 'The agent gets the refusal when it makes the same call again.'],
  used: ['green', 'The agent made this call', 'Its session shows the result.'],
} as const;

function Decided({ status }: { status: keyof typeof decided }) {
  const [color, title, words] = decided[status];
  return (
    <Alert color={color} title={title} role="status">
      {words}
    </Alert>
  );
}
