import { Button, Modal, Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { api, type ApiProblem, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import { Confirm } from '../../shell/confirm.tsx';
import common from '../admin.module.css';
import { clientsOf } from '../queries.ts';
import styles from './people.module.css';
import { focusIfLost } from '../../shell/focus.ts';

type ClientsOfProps = {
  readonly id: string;
  /** The error that names who manages the connections, if Postern cannot end them. */
  readonly keptBy?: ApiProblem;
};

/** Programs that can act for this person when they are not present. */
export function ClientsOf({ id, keptBy }: ClientsOfProps) {
  const { data: clients, error, refetch } = useQuery(clientsOf(id));
  const [leaving, setLeaving] = useState<Schemas['ConnectedClient']>();
  const heading = useRef<HTMLHeadingElement>(null);
  const now = useNow();
  return (
    <section className={common['card']} aria-labelledby="clients">
      <div className={common['head']}>
        <h2 id="clients" tabIndex={-1} ref={heading}>
          Connected clients
        </h2>
      </div>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {clients === undefined && error === null && <Skeleton height={24} role="status" aria-label="Loading" />}
      {clients?.length === 0 && <Text size="sm">No program is connected to this account.</Text>}
      {clients !== undefined && clients.length > 0 && (
        <ul className={styles['clients']}>
          {clients.map((client) => (
            <li key={client.clientId}>
              <div>
                <b className="wrap">
                  <bdi>{client.name}</bdi>
                </b>
                <span className="quiet">
                  <code>{client.scopes.join(' ')}</code> · since <Moment at={client.since} now={now} /> ·{' '}
                  {client.lastUsedAt === null ? (
                    'never used'
                  ) : (
                    <>
                      used <Moment at={client.lastUsedAt} now={now} />
                    </>
                  )}
                </span>
              </div>
              {keptBy === undefined && (
                <Button
                  variant="default"
                  size="xs"
                  aria-label={`Disconnect ${client.name}`}
                  onClick={() => setLeaving(client)}
                >
                  Disconnect
                </Button>
              )}
            </li>
          ))}
        </ul>
      )}
      <Modal
        opened={leaving !== undefined}
        title="Disconnect this client?"
        onClose={() => setLeaving(undefined)}
      >
        {leaving !== undefined && (
          <Confirm
            act={() =>
              unwrap(
                api.DELETE('/users/{id}/clients/{clientId}', {
                  params: { path: { id, clientId: leaving.clientId } },
                }),
              )
            }
            said={`${leaving.name} is disconnected.`}
            refresh={['admin', 'users']}
            confirm="Disconnect now"
            keep="Keep it connected"
            onClose={() => setLeaving(undefined)}
            onDone={() => focusIfLost(heading.current)}
          >
            <Text size="sm">
              <b>
                <bdi>{leaving.name}</bdi>
              </b>{' '}
              can no longer act for this person until they allow it again.
            </Text>
          </Confirm>
        )}
      </Modal>
    </section>
  );
}
