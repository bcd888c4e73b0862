import { Button, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/contract.ts';
import { PlusIcon } from '../../shell/icons.tsx';
import common from '../admin.module.css';
import { modelsOf } from '../documents/fields.ts';
import { agentDefinitions } from '../queries.ts';
import styles from './definition-form.module.css';

type Model = Schemas['AgentModel'];

type Props = {
  readonly value: unknown;
  /** By the path below the list, such as `0.name`. */
  readonly errors: Readonly<Record<string, string>>;
  readonly onChange: (models: readonly Model[]) => void;
};

/** One row of inputs for each model. */
export function ModelRows({ value, errors, onChange }: Props) {
  const models = modelsOf(value);
  const { data } = useQuery(agentDefinitions);
  const usersOf = (model: string) =>
    (data?.definitions ?? []).filter((one) => one.model === model).map(({ name }) => name);
  const change = (at: number, part: Partial<Model>) =>
    onChange(models.map((model, place) => (place === at ? { ...model, ...part } : model)));
  return (
    <div className={common['stack']}>
      {models.map(({ name, note }, at) => (
        // The index is the key: two new rows are otherwise equal, and rows hold no state.
        <fieldset key={at} className={styles['model']} aria-label={`Model ${at + 1}`}>
          <TextInput
            label="Name"
            description="The name that the client uses."
            required
            maxLength={100}
            autoComplete="off"
            value={name}
            error={errors[`${at}.name`]}
            onChange={({ currentTarget }) => change(at, { name: currentTarget.value })}
          />
          <TextInput
            label="Note"
            description={usedBy(usersOf(name))}
            maxLength={500}
            autoComplete="off"
            placeholder="Approved for source code"
            value={note}
            error={errors[`${at}.note`]}
            onChange={({ currentTarget }) => change(at, { note: currentTarget.value })}
          />
          <Button
            variant="default"
            aria-label={`Remove model ${at + 1}`}
            onClick={() => onChange(models.filter((_model, place) => place !== at))}
          >
            Remove
          </Button>
        </fieldset>
      ))}
      <div>
        <Button
          variant="default"
          leftSection={<PlusIcon />}
          onClick={() => onChange([...models, { name: '', note: '' }])}
        >
          Add model
        </Button>
      </div>
    </div>
  );
}

function usedBy(names: readonly string[]): string {
  return names.length === 0 ? 'For people who choose a model.' : `Named by ${names.join(', ')}.`;
}
