import { Alert, Badge, Button, Group, Modal, PasswordInput, Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { api, dataOf, wrongFields } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { NoMatch } from '../../lists/empty.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import { Confirm } from '../../shell/confirm.tsx';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import { useChange } from '../../shell/use-change.ts';
import styles from '../../lists/item-list.module.css';
import { myConnections } from '../queries.ts';
import { focusIfLost } from '../../shell/focus.ts';

type Connection = Schemas['McpConnection'];

const route = getRouteApi('/settings/connections');

/** Reasons why a sign-in at another server did not connect the account, by the server's code. */
const problems: Readonly<Record<string, string>> = {
  not_found:
    'An administrator switched off MCP, or switched off or deleted this server. No account was connected.',
  state_conflict:
    'The sign-in was refused there, took longer than ten minutes, or began in another browser session. Connect again.',
  connection_broken: 'The server does not accept the account that you chose.',
  role_required: 'You no longer have the role that connecting an account needs.',
  external_server_unavailable: 'The server cannot be used right now. Try again later.',
};

/** The accounts of a person at external MCP servers. */
export function ConnectionsPage() {
  const { data, error, refetch } = useQuery(myConnections);
  const { problem } = route.useSearch();
  const [connecting, setConnecting] = useState<Connection>();
  const [leaving, setLeaving] = useState<Connection>();
  const heading = useRef<HTMLHeadingElement>(null);
  const all = data?.connections;
  const close = () => {
    setConnecting(undefined);
    setLeaving(undefined);
  };
  const focus = () => focusIfLost(heading.current);
  return (
    <>
      <PageHead
        title="MCP connections"
        intro="Your accounts at other MCP servers. Your agents use their tools through Postern."
        heading={heading}
      />
      {problem !== undefined && (
        <Alert color="yellow" title="The account is not connected" mb="md" role="alert">
          {problems[problem] ?? 'Something went wrong. Connect again.'}
        </Alert>
      )}
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {all === undefined && error === null && (
        <Skeleton height={80} radius="lg" role="status" aria-label="Loading" />
      )}
      {all?.length === 0 && <NoMatch>No external MCP servers yet. An administrator adds them.</NoMatch>}
      {all !== undefined && all.length > 0 && (
        <ul className={styles['list']}>
          {all.map((connection) => (
            <Row
              key={connection.slug}
              of={connection}
              onConnect={() => setConnecting(connection)}
              onEnd={() => setLeaving(connection)}
            />
          ))}
        </ul>
      )}
      <Modal opened={connecting !== undefined} onClose={close} title="Connect your account">
        {connecting !== undefined && <Connect to={connecting} onClose={close} onDone={focus} />}
      </Modal>
      <Modal opened={leaving !== undefined} onClose={close} title="Disconnect this account?">
        {leaving !== undefined && (
          <Confirm
            act={() => api.DELETE('/me/connections/{slug}', { params: { path: { slug: leaving.slug } } })}
            said={`${leaving.name} is disconnected.`}
            refresh={['connections']}
            confirm="Disconnect now"
            keep="Keep it connected"
            onClose={close}
            onDone={focus}
          >
            <Text size="sm" mb="sm">
              Your agents lose the tools of{' '}
              <b>
                <bdi>{leaving.name}</bdi>
              </b>
              , and Postern forgets your account there.
            </Text>
          </Confirm>
        )}
      </Modal>
    </>
  );
}

type RowProps = { readonly of: Connection; readonly onConnect: () => void; readonly onEnd: () => void };

function Row({ of: { name, slug, status, connectedAt, lastUsedAt }, onConnect, onEnd }: RowProps) {
  const now = useNow();
  return (
    <li>
      <div>
        <bdi className={styles['name']}>{name}</bdi>
        <code>{slug}__…</code>
        <span className="quiet">
          {connectedAt === null ? (
            'Not connected'
          ) : (
            <>
              Connected <Moment at={connectedAt} now={now} /> ·{' '}
              {lastUsedAt === null ? (
                'never used'
              ) : (
                <>
                  used <Moment at={lastUsedAt} now={now} />
                </>
              )}
            </>
          )}
        </span>
        {status === 'broken' && (
          <span>
            <Badge color="yellow">Broken</Badge> The server no longer accepts this account. Connect it again.
          </span>
        )}
      </div>
      <Group component="span" gap="0.5rem">
        {status !== 'connected' && (
          <Button size="xs" aria-label={`Connect ${name}`} onClick={onConnect}>
            Connect
          </Button>
        )}
        {status !== 'disconnected' && (
          <Button variant="default" size="xs" aria-label={`Disconnect ${name}`} onClick={onEnd}>
            Disconnect
          </Button>
        )}
      </Group>
    </li>
  );
}

const explanations: Readonly<Record<Connection['auth'], string>> = {
  none: 'This server needs no sign-in. Your agents get its tools that an administrator accepted.',
  header: 'Postern stores the value encrypted, never shows it, and sends it to this server only.',
  oauth: 'You sign in at the page of this server, allow Postern, and come back.',
};

type ConnectProps = {
  readonly to: Connection;
  readonly onClose: () => void;
  readonly onDone: () => void;
};

function Connect({ to: { slug, name, auth }, onClose, onDone }: ConnectProps) {
  const [value, setValue] = useState('');
  const { run, error, isBusy } = useChange({
    async act() {
      const params = { path: { slug } };
      const body = auth === 'header' ? { value } : {};
      const { authorizationUrl } = await dataOf(api.POST('/me/connections/{slug}/start', { params, body }));
      if (authorizationUrl === null) return;
      window.location.assign(authorizationUrl);
      // The button stays busy until the page of the authorization server opens.
      await new Promise(() => undefined);
    },
    said: `${name} is connected.`,
    refresh: ['connections'],
    onClose,
    onDone,
  });
  const wrong = wrongFields(error)['value'];

  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        run();
      }}
    >
      <Text size="sm" mb="sm">
        <b>
          <bdi>{name}</bdi>
        </b>
        . {explanations[auth]}
      </Text>
      {auth === 'header' && (
        <PasswordInput
          label="Value of the Authorization header"
          description="As the server gave it to you, often with Bearer and a space in front."
          data-autofocus
          required
          maxLength={4_096}
          autoComplete="off"
          value={value}
          error={wrong}
          onChange={({ currentTarget }) => setValue(currentTarget.value)}
        />
      )}
      {error !== undefined && wrong === undefined && <Problem error={error} />}
      <Group justify="flex-end" mt="md" gap="sm">
        <Button variant="default" onClick={onClose} disabled={isBusy}>
          Cancel
        </Button>
        <Button type="submit" loading={isBusy}>
          {auth === 'oauth' ? 'Sign in there' : 'Connect'}
        </Button>
      </Group>
    </form>
  );
}
