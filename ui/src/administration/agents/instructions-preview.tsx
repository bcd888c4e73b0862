import { Alert, Button, Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Problem } from '../../shell/problem.tsx';
import { useChange } from '../../shell/use-change.ts';
import { agentDefinitions, mcpPolicy } from '../queries.ts';
import styles from './definition-form.module.css';

type PreviewProps = {
  readonly instructions: string;
  readonly onChange: (instructions: string) => void;
};

/** What an agent gets: the instructions of the MCP policy, then these or the default. */
export function InstructionsPreview({ instructions, onChange }: PreviewProps) {
  const { data: policy } = useQuery(mcpPolicy);
  const { data } = useQuery(agentDefinitions);
  if (policy === undefined || data === undefined) return null;
  const { text } = data.defaultInstructions;
  const isDefault = instructions.trim() === '';
  const parts = [policy.instructions, isDefault ? text : instructions].filter((part) => part !== '');
  return (
    <details className={styles['preview']}>
      <summary>What its agents get</summary>
      <pre aria-label="What its agents get">{parts.join('\n\n')}</pre>
      {isDefault && (
        <Group justify="flex-end">
          <Button variant="default" size="xs" onClick={() => onChange(text)}>
            Start from the default
          </Button>
        </Group>
      )}
    </details>
  );
}

/** Says that the default of Postern changed since the instructions were written. */
export function StaleInstructions({ of: definition }: { readonly of: Schemas['AgentDefinition'] }) {
  const { data } = useQuery(agentDefinitions);
  const { id, instructions, instructionsStatus, instructionsDefault } = definition;
  const { run, error, isBusy } = useChange({
    act: () =>
      unwrap(
        api.PATCH('/config/agents/definitions/{id}', { params: { path: { id } }, body: { instructions } }),
      ),
    said: 'The instructions are kept.',
    refresh: ['admin', 'agents'],
  });
  if (instructionsStatus !== 'stale') return null;
  const since =
    instructionsDefault === null
      ? 'They were written before Postern had default instructions.'
      : 'The default of Postern changed since they were written.';
  return (
    <Alert color="yellow" mb="md" title="These instructions were written against an older default">
      <Text size="sm">{since} Compare them with the default of this version:</Text>
      <pre className={styles['default']} aria-label="Default instructions">
        {data?.defaultInstructions.text}
      </pre>
      {error !== undefined && <Problem error={error} />}
      <Button variant="default" size="xs" loading={isBusy} onClick={run}>
        Keep the instructions as they are
      </Button>
    </Alert>
  );
}
