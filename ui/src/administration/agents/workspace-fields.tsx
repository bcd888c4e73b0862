import { NumberInput, Radio, SegmentedControl, Stack } from '@mantine/core';
import { useId } from 'react';
import type { Schemas } from '../../api/contract.ts';
import { Picker } from '../../keys/new/repository-field.tsx';
import styles from './definition-form.module.css';

export type Workspace = Schemas['AgentWorkspace'];

/** Changes nothing for the person. */
export const wholeWorkspace: Workspace = {
  repositories: { mode: 'all' },
  maxEnvironments: null,
  environmentTtlHours: null,
  maySites: 'publish',
};

const siteWords: Readonly<Record<Workspace['maySites'], string>> = {
  none: 'None',
  read: 'Read',
  publish: 'Read and change',
};
const maxRepositories = 50;

type FieldsProps = { readonly of: Workspace; readonly onChange: (next: Workspace) => void };

export function WorkspaceFields({ of: workspace, onChange }: FieldsProps) {
  const id = useId();
  const { repositories, maxEnvironments, environmentTtlHours, maySites } = workspace;
  const change = (part: Partial<Workspace>) => onChange({ ...workspace, ...part });
  const isSelected = repositories.mode === 'selected';
  return (
    <section aria-labelledby={id}>
      <h2 id={id} className={styles['title']}>
        Workspace
      </h2>
      <p className="subline">
        What agents with this definition can reach, never more than the person can. With all repositories, no
        limits, and sites to read and change, the workspace restricts nothing. Older definitions have this
        workspace.
      </p>
      <Stack gap="md" mt="sm">
        <Radio.Group
          label="Repositories"
          description="With their Environments and builds."
          value={repositories.mode}
          onChange={(mode) =>
            change({
              repositories: mode === 'all' ? { mode: 'all' } : { mode: 'selected', repositories: [] },
            })
          }
        >
          <Stack gap="xs" mt="xs">
            <Radio value="all" label="All repositories" />
            <Radio
              value="selected"
              label="Selected repositories"
              description="With none selected, agents reach no repository."
            />
          </Stack>
        </Radio.Group>
        {isSelected && (
          <div>
            <Picker
              chosen={repositories.repositories}
              max={maxRepositories}
              onChange={(names) => change({ repositories: { mode: 'selected', repositories: names } })}
            />
          </div>
        )}
        <div className={styles['limits']}>
          <Limit
            label="Environments at once"
            description="The most Environments its agents may have for one person. Leave empty to use the limit of the Environment policy."
            value={maxEnvironments}
            min={0}
            max={10_000}
            onChange={(next) => change({ maxEnvironments: next })}
          />
          <Limit
            label="Longest lease, in hours"
            description="The longest lease that its agents can choose. Leave empty to use the limit of the Environment policy."
            value={environmentTtlHours}
            min={1}
            max={8_760}
            onChange={(next) => change({ environmentTtlHours: next })}
          />
        </div>
        <div className={styles['tool']}>
          <div>
            <span id={`${id}-sites`}>Sites</span>
            <span className="subline">
              Which tools for sites its agents can use. The rules of the tools still apply.
            </span>
          </div>
          <SegmentedControl
            aria-labelledby={`${id}-sites`}
            size="xs"
            value={maySites}
            onChange={(next) => change({ maySites: next as Workspace['maySites'] })}
            data={Object.entries(siteWords).map(([value, label]) => ({ value, label }))}
          />
        </div>
      </Stack>
    </section>
  );
}

type LimitProps = {
  readonly label: string;
  readonly description: string;
  readonly value: number | null;
  readonly min: number;
  readonly max: number;
  readonly onChange: (value: number | null) => void;
};

function Limit({ value, onChange, ...field }: LimitProps) {
  return (
    <NumberInput
      {...field}
      radius="md"
      hideControls
      allowDecimal={false}
      allowNegative={false}
      value={value ?? ''}
      onChange={(next) => onChange(typeof next === 'number' ? next : null)}
    />
  );
}
