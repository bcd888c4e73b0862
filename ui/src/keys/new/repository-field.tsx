import { Alert, MultiSelect, Radio } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { type ClipboardEvent, useState } from 'react';
import { searchVerb } from '../../lists/search-text.ts';
import { Problem } from '../../shell/problem.tsx';
import { touchesOnlySites } from './access.ts';
import type { Draft, Policy } from './draft.ts';
import { FieldGroup } from './field-group.tsx';
import styles from './new-key.module.css';
import { repositoriesNamed } from '../../api/queries.ts';

type RepositoryProps = {
  draft: Draft;
  policy: Policy;
  isRegistryEmpty: boolean;
  error: string | undefined;
  onChange: (part: Partial<Pick<Draft, 'reach' | 'repositories'>>) => void;
};

export function RepositoryField({ draft, policy, isRegistryEmpty, error, onChange }: RepositoryProps) {
  const { allowAll, maxSelected } = policy.repositories;
  return (
    <FieldGroup
      field="repositories"
      legend="Repositories"
      description={
        touchesOnlySites(draft.access)
          ? 'Sites belong to no repository, but the key policy requires a selection.'
          : 'Where the key may do this.'
      }
      error={error}
    >
      <div className={styles['choices']}>
        <Radio
          name="reach"
          label="Only those I choose"
          description={isRegistryEmpty && allowAll ? 'None is registered yet.' : undefined}
          disabled={isRegistryEmpty && allowAll}
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
        <Broad isRegistryEmpty={isRegistryEmpty} />
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

/** Warns if the person could choose fewer repositories; otherwise explains the choice. */
function Broad({ isRegistryEmpty }: { isRegistryEmpty: boolean }) {
  if (isRegistryEmpty) {
    return (
      <p className={styles['note']}>
        No repository is registered yet. The key will reach each one that is registered later. You can
        restrict the key then.
      </p>
    );
  }
  return (
    <Alert color="yellow" mt="sm" title="This key reaches every repository">
      Anyone who obtains the key reaches them too, including those registered later.
    </Alert>
  );
}

type PickerProps = { chosen: readonly string[]; max: number; onChange: (names: string[]) => void };

/** The server searches, because a registry may be too long for a list. */
export function Picker({ chosen, max, onChange }: PickerProps) {
  const [text, setText] = useState('');
  const [search] = useDebouncedValue(text.trim(), 200);
  const { data, error, refetch } = useQuery(repositoriesNamed(search));
  const found = data?.data.map(({ fullName }) => fullName) ?? [];

  /** Parses a pasted list, separated by lines or commas. The server checks that the repositories exist. */
  function paste(event: ClipboardEvent): void {
    const names = namesIn(event.clipboardData.getData('text'));
    if (names.length < 2) return;
    event.preventDefault();
    setText('');
    onChange([...new Set([...chosen, ...names])].slice(0, max));
  }

  const isEmpty = data !== undefined && search === '' && found.length === 0;
  if (isEmpty && chosen.length === 0) {
    return (
      <p className={styles['note']}>No repository is registered yet. An administrator registers them.</p>
    );
  }
  return (
    <>
      <MultiSelect
        mt="sm"
        aria-label="Choose repositories"
        placeholder={chosen.length === 0 ? 'Search by a part of the name, or paste a list' : ''}
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
        onPaste={paste}
        nothingFoundMessage={`No repository’s name ${searchVerb(text)} “${text}”`}
      />
      <p className={styles['note']} role="status">
        {chosen.length} of {max} chosen
      </p>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
    </>
  );
}

function namesIn(text: string): string[] {
  return text.split(/[\s,;]+/).filter((name) => /^[\w.-]+\/[\w.-]+$/.test(name));
}
