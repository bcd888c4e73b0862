import { Button, Select, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import { useChange } from '../../shell/use-change.ts';
import { myAgentAccess } from '../queries.ts';
import list from '../../agents/agent-list.module.css';
import styles from './agents.module.css';

type Access = Schemas['AgentAccess'];
type Offered = readonly Schemas['OfferedAgentDefinition'][];

/** What the agents of each client may do for the person. Nothing before an agent made a call. */
export function AccessCard() {
  const { data, error, refetch } = useQuery(myAgentAccess);
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined || data.access.length === 0) return null;
  return (
    <section className={list['card']} aria-labelledby="access">
      <Title order={2} size="h4" id="access">
        What your agents are for
      </Title>
      <ul className={list['list']}>
        {data.access.map((one) => (
          // After a save, the row starts again from what was saved.
          <AccessRow key={`${one.sessionId} ${one.definition?.id ?? ''}`} of={one} offered={data.offered} />
        ))}
      </ul>
    </section>
  );
}

const onlyReading = '';

function AccessRow({ of: access, offered }: { of: Access; offered: Offered }) {
  const { sessionId, clientId, lastCallAt, definition, isPinned } = access;
  const now = useNow();
  const saved = definition?.id ?? onlyReading;
  const [chosen, setChosen] = useState(saved);
  const purpose = isPinned ? undefined : offered.find(({ id }) => id === chosen)?.purpose;
  const { run, error, isBusy } = useChange({
    act: () =>
      unwrap(
        api.PUT('/me/agents/sessions/{id}/definition', {
          params: { path: { id: sessionId } },
          body: { definitionId: chosen === onlyReading ? null : chosen },
        }),
      ),
    said: 'Your choice is saved.',
    refresh: ['agents'],
  });
  return (
    <li>
      <div>
        <code>{clientId}</code>
        <span className="subline">
          Last call <Moment at={lastCallAt} now={now} />
        </span>
        {purpose !== undefined && (
          <span className="subline">
            <bdi>{purpose}</bdi>
          </span>
        )}
      </div>
      {isPinned ? (
        <span>
          <bdi>{definition?.name}</bdi>
          <span className="subline">Chosen by an administrator</span>
        </span>
      ) : (
        <div className={styles['choice']}>
          <Select
            aria-label={`What agents of ${clientId} are for`}
            size="xs"
            allowDeselect={false}
            value={chosen}
            data={[
              { value: onlyReading, label: 'Only reading' },
              ...offered.map(({ id, name }) => ({ value: id, label: name })),
            ]}
            onChange={(next) => setChosen(next ?? onlyReading)}
          />
          <Button size="xs" disabled={chosen === saved} loading={isBusy} onClick={run}>
            Save
          </Button>
        </div>
      )}
      {error !== undefined && <Problem error={error} />}
    </li>
  );
}
