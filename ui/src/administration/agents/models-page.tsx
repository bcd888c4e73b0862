import { Button, Group, Skeleton, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, unwrap, wrongFields } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { PageHead } from '../../lists/page-head.tsx';
import { PlusIcon } from '../../shell/icons.tsx';
import { Problem } from '../../shell/problem.tsx';
import { useAct } from '../act.tsx';
import common from '../admin.module.css';
import { agentDefinitions, agentModels } from '../queries.ts';
import { TextLink } from '../text-link.tsx';
import styles from './definition-form.module.css';

/** The models that definitions may name. */
export function ModelsPage() {
  const { data, error, refetch } = useQuery(agentModels);
  return (
    <>
      <TextLink to="/admin/agents" size="sm">
        ← Agents
      </TextLink>
      <PageHead
        title="Models for agents"
        intro="The models that definitions may name. Postern runs no model and stores no key of a provider."
      />
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && (
        <Skeleton height={240} radius="lg" role="status" aria-label="Loading" />
      )}
      {data !== undefined && <ModelsForm key={data.etag} models={data.models} etag={data.etag} />}
    </>
  );
}

type Row = Schemas['AgentModel'] & { readonly key: number };
type FormProps = { readonly models: readonly Schemas['AgentModel'][]; readonly etag: string };

function ModelsForm({ models, etag }: FormProps) {
  const [rows, setRows] = useState<readonly Row[]>(() => models.map((model, key) => ({ ...model, key })));
  const [nextKey, setNextKey] = useState(models.length);
  const { data: definitions } = useQuery(agentDefinitions);
  const { run, error, isBusy } = useAct({
    act: () =>
      unwrap(
        api.PUT('/config/agents/models', {
          params: { header: { 'If-Match': etag } },
          body: { models: rows.map(({ name, note }) => ({ name: name.trim(), note: note.trim() })) },
        }),
      ),
    said: 'Saved.',
    refresh: 'agents',
    onDone: () => undefined,
  });
  const wrong = wrongFields(error);
  const isBeside = Object.keys(wrong).some((field) => /^models\.\d+\./.test(field));
  const change = (key: number, part: Partial<Row>) =>
    setRows((before) => before.map((row) => (row.key === key ? { ...row, ...part } : row)));
  const usersOf = (model: string) =>
    (definitions?.definitions ?? []).filter((one) => one.model === model).map(({ name }) => name);
  return (
    <form
      noValidate
      className={common['card']}
      onSubmit={(event) => {
        event.preventDefault();
        run();
      }}
    >
      <div className={common['stack']}>
        {rows.length === 0 && <p className="quiet">No models. Definitions name none.</p>}
        {rows.map(({ key, name, note }, at) => (
          <fieldset key={key} className={styles['model']} aria-label={`Model ${at + 1}`}>
            <TextInput
              label="Name"
              description="As the client names it."
              required
              maxLength={100}
              autoComplete="off"
              value={name}
              error={wrong[`models.${at}.name`]}
              onChange={({ currentTarget }) => change(key, { name: currentTarget.value })}
            />
            <TextInput
              label="Note"
              description={usedBy(usersOf(name))}
              maxLength={500}
              autoComplete="off"
              placeholder="Approved for source code"
              value={note}
              error={wrong[`models.${at}.note`]}
              onChange={({ currentTarget }) => change(key, { note: currentTarget.value })}
            />
            <Button
              variant="default"
              aria-label={`Remove model ${at + 1}`}
              onClick={() => setRows((before) => before.filter((row) => row.key !== key))}
            >
              Remove
            </Button>
          </fieldset>
        ))}
        {error !== undefined && !isBeside && <Problem error={error} />}
        <Group justify="space-between">
          <Button
            variant="default"
            leftSection={<PlusIcon />}
            onClick={() => {
              setRows([...rows, { key: nextKey, name: '', note: '' }]);
              setNextKey(nextKey + 1);
            }}
          >
            Add model
          </Button>
          <Button type="submit" loading={isBusy}>
            Save
          </Button>
        </Group>
      </div>
    </form>
  );
}

function usedBy(names: readonly string[]): string {
  return names.length === 0 ? 'For people who choose a model.' : `Named by ${names.join(', ')}.`;
}
