import { Button, Modal, Skeleton, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Confirm } from '../../shell/confirm.tsx';
import { PlugIcon } from '../../shell/icons.tsx';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import { Empty } from '../../lists/empty.tsx';
import styles from '../../lists/item-list.module.css';
import { myClients } from '../queries.ts';
import { focusIfLost } from '../../shell/focus.ts';

type Client = Schemas['ConnectedClient'];

const steps = [
  {
    do: 'Sign in from a program, such as a command line.',
    why: 'It opens a Postern page, or shows a code to enter on one. There you see what it asks for, and allow it.',
  },
  { do: 'Find it here.', why: 'You see what it may do, since when, and when it was last used.' },
  { do: 'Disconnect it when you no longer need it.', why: 'It loses access immediately and must ask again.' },
];

/** Programs that got access at a sign-in, such as the command line, with a button to disconnect each. */
export function ClientsPage() {
  const { data: clients, error, refetch } = useQuery(myClients);
  const [leaving, setLeaving] = useState<Client>();
  const heading = useRef<HTMLHeadingElement>(null);
  const now = useNow();
  return (
    <>
      <title>Connected clients · Postern</title>
      <Title order={1} size="h2" tabIndex={-1} ref={heading}>
        Connected clients
      </Title>
      <p className={styles['intro']}>
        Programs that can act for you when you are not present, because you allowed it at a sign-in.
      </p>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {clients === undefined && error === null && (
        <Skeleton height={80} radius="lg" role="status" aria-label="Loading" />
      )}
      {clients?.length === 0 && (
        <Empty picture={<PlugIcon size={28} />} title="No program is connected" steps={steps}>
          <p className="quiet">A script that runs without you uses an API key instead.</p>
          <Button variant="default" renderRoot={(props) => <Link to="/settings/keys/new" {...props} />}>
            Create a key
          </Button>
        </Empty>
      )}
      {clients !== undefined && clients.length > 0 && (
        <ul className={styles['list']}>
          {clients.map((client) => (
            <li key={client.clientId}>
              <div>
                <bdi className={styles['name']}>{client.name}</bdi>
                <code>{client.scopes.join(' ')}</code>
                <span className="quiet">
                  Connected <Moment at={client.since} now={now} /> ·{' '}
                  {client.lastUsedAt === null ? (
                    'never used'
                  ) : (
                    <>
                      used <Moment at={client.lastUsedAt} now={now} />
                    </>
                  )}
                </span>
              </div>
              <Button
                variant="default"
                size="xs"
                aria-label={`Disconnect ${client.name}`}
                onClick={() => setLeaving(client)}
              >
                Disconnect
              </Button>
            </li>
          ))}
        </ul>
      )}
      <Modal
        opened={leaving !== undefined}
        onClose={() => setLeaving(undefined)}
        title="Disconnect this client?"
      >
        {leaving !== undefined && (
          <Confirm
            act={() => unwrap(api.DELETE('/me/clients/{id}', { params: { path: { id: leaving.clientId } } }))}
            said={`${leaving.name} is disconnected.`}
            refresh={['clients']}
            confirm="Disconnect now"
            keep="Keep it connected"
            onClose={() => setLeaving(undefined)}
            onDone={() => focusIfLost(heading.current)}
          >
            <Text size="sm" mb="sm">
              <b>
                <bdi>{leaving.name}</bdi>
              </b>{' '}
              can no longer act for you until you allow it again.
            </Text>
          </Confirm>
        )}
      </Modal>
    </>
  );
}
