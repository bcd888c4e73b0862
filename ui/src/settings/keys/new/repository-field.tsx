import { Alert, MultiSelect, Radio } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { repositoriesNamed } from '../../../api/queries.ts';
import { Problem } from '../../../app/problem.tsx';
import type { Draft, Policy } from './draft.ts';
import { FieldGroup } from './field-group.tsx';
import styles from './new-key.module.css';

type RepositoryProps = {
  draft: Draft;
  policy: Policy;
  error: string | undefined;
  onChange: (part: Partial<Pick<Draft, 'reach' | 'repositories'>>) => void;
};

export function RepositoryField({ draft, policy, error, onChange }: RepositoryProps) {
  const { allowAll, maxSelected } = policy.repositories;
  return (
    <FieldGroup field="repositories" legend="Repositories" description="Where it may do it." error={error}>
      <div className={styles['choices']}>
        <Radio
          name="reach"
          label="Only those I choose"
          checked={draft.reach === 'selected'}
          onChange={() => onChange({ reach: 'selected' })}
        />
        <Radio
          name="reach"
          label="All repositories"
          description={allowAll ? undefined : 'The key policy does not allow this.'}
          disabled={!allowAll}
          checked={draft.reach === 'all'}
          onChange={() => onChange({ reach: 'all' })}
        />
      </div>
      {draft.reach === 'all' ? (
        <Alert color="yellow" mt="sm" title="A broad grant">
          The key reaches every repository, also those registered later. Whoever gets hold of it does, too.
        </Alert>
      ) : (
        <Picker
          chosen={draft.repositories}
          max={maxSelected}
          onChange={(repositories) => onChange({ repositories })}
        />
      )}
    </FieldGroup>
  );
}

type PickerProps = { chosen: readonly string[]; max: number; onChange: (names: string[]) => void };

/** The server searches: a registry may be longer than a list that anybody reads. */
export function Picker({ chosen, max, onChange }: PickerProps) {
  const [text, setText] = useState('');
  const [search] = useDebouncedValue(text.trim(), 200);
  const { data, error, refetch } = useQuery(repositoriesNamed(search));
  const found = data?.data.map(({ fullName }) => fullName) ?? [];
  const isEmpty = data !== undefined && search === '' && found.length === 0;
  if (isEmpty && chosen.length === 0) {
    return (
      <p className={styles['note']}>
        No repository is registered yet, so choose <b>All repositories</b>, or ask an administrator to
        register one.
      </p>
    );
  }
  return (
    <>
      <MultiSelect
        mt="sm"
        aria-label="Choose repositories"
        placeholder={chosen.length === 0 ? 'Search by the start of the name' : ''}
        searchable
        hidePickedOptions
        clearable
        clearButtonProps={{ 'aria-label': 'Remove all' }}
        radius="md"
        maxValues={max}
        searchValue={text}
        onSearchChange={setText}
        data={[...new Set([...chosen, ...found])]}
        value={[...chosen]}
        onChange={onChange}
        nothingFoundMessage="No repository begins like this"
        comboboxProps={{ transitionProps: { duration: 0 } }}
      />
      <p className={styles['note']} role="status">
        {chosen.length} of {max} chosen
      </p>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
    </>
  );
}
