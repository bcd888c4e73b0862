import { Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Problem } from '../../shell/problem.tsx';
import { branchesNamed } from '../queries.ts';

type BranchProps = {
  readonly repository: string;
  readonly value: string;
  readonly error: string | undefined;
  readonly onChange: (branch: string) => void;
};

/** Picks a branch from the git server's current list. The server searches: it lists at most 100. */
export function BranchSelect({ repository, value, error, onChange }: BranchProps) {
  const [text, setText] = useState('');
  const [search] = useDebouncedValue(text === value ? '' : text.trim(), 250);
  const branches = useQuery(branchesNamed(repository, search));
  const names = branches.data?.map(({ name }) => name) ?? [];
  return (
    <>
      <Select
        label="Branch"
        placeholder={repository === '' ? 'Choose a repository first' : 'Search for a branch'}
        required
        searchable
        allowDeselect={false}
        disabled={repository === ''}
        value={value === '' ? null : value}
        error={error}
        data={[...new Set([...(value === '' || search !== '' ? [] : [value]), ...names])]}
        onSearchChange={setText}
        onChange={(name) => onChange(name ?? '')}
        nothingFoundMessage={branches.isFetching ? 'Searching…' : 'No branch has this name'}
      />
      {branches.error !== null && <Problem error={branches.error} onRetry={() => void branches.refetch()} />}
    </>
  );
}
