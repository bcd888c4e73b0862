import { Select, Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Query } from '../../api/contract.ts';
import { Command } from '../../shell/command.tsx';
import { Problem } from '../../shell/problem.tsx';
import common from '../admin.module.css';
import { exportedDefinition } from '../queries.ts';

type Client = NonNullable<Query<'/agents/definitions/{id}/export'>['for']>;

const clients: readonly { readonly value: Client; readonly label: string }[] = [
  { value: 'claude-code', label: 'Claude Code' },
  { value: 'codex', label: 'Codex' },
  { value: 'vscode', label: 'VS Code' },
  { value: 'cursor', label: 'Cursor' },
  { value: 'generic', label: 'Another client' },
];

/** Files with which agents in a repository find Postern and follow the saved definition. */
export function ExportCard({ id }: { id: string }) {
  const [client, setClient] = useState<Client>('claude-code');
  const { data: files, error, refetch } = useQuery(exportedDefinition(id, client));
  return (
    <section className={common['card']} aria-labelledby="export">
      <div className={common['head']}>
        <h2 id="export">Files for a repository</h2>
      </div>
      <div className={common['stack']}>
        <Text size="sm">
          With these files, agents that work in a repository find Postern and get the saved instructions. They
          hold no secret. If a file already exists, merge the two.
        </Text>
        <Select
          label="Client"
          radius="md"
          allowDeselect={false}
          data={clients}
          value={client}
          onChange={(next) => setClient(clients.find(({ value }) => value === next)?.value ?? client)}
        />
        {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
        {files === undefined && error === null && (
          <Skeleton height={120} radius="md" role="status" aria-label="Loading the files" />
        )}
        {files?.map(({ path, content }) => (
          <div key={path}>
            <Text size="sm" mb={4}>
              <code>{path}</code>
            </Text>
            <Command text={content} of={path} />
          </div>
        ))}
      </div>
    </section>
  );
}
