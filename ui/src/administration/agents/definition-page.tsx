import { Button, Modal, Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { PageHead } from '../../lists/page-head.tsx';
import { Problem } from '../../shell/problem.tsx';
import { Confirm } from '../../shell/confirm.tsx';
import { agentDefinitions } from '../queries.ts';
import { TextLink } from '../text-link.tsx';
import { DefinitionForm } from './definition-form.tsx';
import { StaleInstructions } from './instructions-preview.tsx';
import { ExportCard } from './export-card.tsx';

const route = getRouteApi('/administration/admin/agents/$id');

export function NewDefinitionPage() {
  const navigate = useNavigate();
  return (
    <>
      <Back />
      <PageHead
        title="New agent definition"
        intro="It takes effect for the agents of its clients within a second."
      />
      <DefinitionForm onSaved={() => navigate({ to: '/admin/agents' })} />
    </>
  );
}

/** One definition: its form, and a button to delete it. */
export function DefinitionPage() {
  const { id } = route.useParams();
  const { data, error, refetch } = useQuery(agentDefinitions);
  const definition = data?.definitions.find((one) => one.id === id);
  return (
    <>
      <Back />
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && (
        <Skeleton height={420} radius="lg" role="status" aria-label="Loading" />
      )}
      {data !== undefined && definition === undefined && (
        <PageHead title="No such definition" intro="It may have been deleted." />
      )}
      {definition !== undefined && <Known definition={definition} />}
    </>
  );
}

function Back() {
  return (
    <TextLink to="/admin/agents" size="sm">
      ← Agents
    </TextLink>
  );
}

function Known({ definition }: { definition: Schemas['AgentDefinition'] }) {
  const [isLeaving, setLeaving] = useState(false);
  const navigate = useNavigate();
  const { id, name, purpose } = definition;
  return (
    <>
      <PageHead title={name} intro={<bdi>{purpose}</bdi>}>
        <Button variant="default" onClick={() => setLeaving(true)}>
          Delete
        </Button>
      </PageHead>
      <StaleInstructions of={definition} />
      <DefinitionForm key={id} of={definition} />
      <ExportCard id={id} />
      <Modal opened={isLeaving} title="Delete this definition?" onClose={() => setLeaving(false)}>
        <Confirm
          act={async () => {
            await api.DELETE('/config/agents/definitions/{id}', { params: { path: { id } } });
            await navigate({ to: '/admin/agents' });
          }}
          said={`${name} is deleted.`}
          refresh={['admin', 'agents']}
          confirm="Delete definition"
          keep="Keep it"
          onClose={() => setLeaving(false)}
        >
          <Text size="sm">
            <b className="wrap">
              <bdi>{name}</bdi>
            </b>{' '}
            is deleted. Agents of its clients can then only read.
          </Text>
        </Confirm>
      </Modal>
    </>
  );
}
