import { Checkbox, NativeSelect, Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { searchVerb } from '../lists/search-text.ts';
import { keyScopes, type KeySearch, keySorts } from './key-search.ts';
import styles from './keys-page.module.css';
import { repositoriesNamed } from '../api/queries.ts';

const sortLabels = {
  created: 'Newest first',
  name: 'By name',
  used: 'Recently used first',
  idle: 'Longest unused first',
  ending: 'Expiring soonest first',
} as const;

type FiltersProps = { readonly shown: KeySearch; readonly onChange: (search: KeySearch) => void };

/** Filters and order of the list. They are kept in the address, and the server applies them. */
export function KeyFilters({ shown, onChange }: FiltersProps) {
  const { scope, repository, unused, sort, ...rest } = shown;
  const { page: _page, ...others } = rest;
  const keep = {
    ...others,
    ...(scope && { scope }),
    ...(repository && { repository }),
    ...(unused && { unused }),
    ...(sort && { sort }),
  };
  return (
    <div className={styles['filters']}>
      <NativeSelect
        aria-label="May do"
        radius="md"
        value={scope ?? ''}
        data={[
          { value: '', label: 'Any scope' },
          ...keyScopes.map((value) => ({ value, label: `May do ${value}` })),
        ]}
        onChange={({ currentTarget: { value } }) => {
          const chosen = keyScopes.find((one) => one === value);
          const { scope: _scope, ...without } = keep;
          onChange(chosen === undefined ? without : { ...without, scope: chosen });
        }}
      />
      <RepositoryFilter
        value={repository ?? null}
        onChange={(name) => {
          const { repository: _repository, ...without } = keep;
          onChange(name === null ? without : { ...without, repository: name });
        }}
      />
      <NativeSelect
        aria-label="Order"
        radius="md"
        value={sort ?? 'created'}
        data={keySorts.map((value) => ({ value, label: sortLabels[value] }))}
        onChange={({ currentTarget: { value } }) => {
          const chosen = keySorts.find((one) => one === value);
          const { sort: _sort, ...without } = keep;
          onChange(chosen === undefined ? without : { ...without, sort: chosen });
        }}
      />
      <Checkbox
        label="Unused for 30 days"
        checked={unused === true}
        onChange={({ currentTarget: { checked } }) => {
          const { unused: _unused, ...without } = keep;
          onChange(checked ? { ...without, unused: true } : without);
        }}
      />
    </div>
  );
}

/** The server searches, because a registry may be too long for a list. */
function RepositoryFilter({
  value,
  onChange,
}: {
  value: string | null;
  onChange: (name: string | null) => void;
}) {
  const [text, setText] = useState(value ?? '');
  const [search] = useDebouncedValue(text.trim(), 200);
  const { data } = useQuery(repositoriesNamed(search === value ? '' : search));
  const found = data?.data.map(({ fullName }) => fullName) ?? [];
  return (
    <Select
      aria-label="Reaches the repository"
      placeholder="Any repository"
      radius="md"
      searchable
      clearable
      clearButtonProps={{ 'aria-label': 'Any repository' }}
      data={[...new Set([...(value === null ? [] : [value]), ...found])]}
      value={value}
      searchValue={text}
      onSearchChange={setText}
      onChange={onChange}
      nothingFoundMessage={`No repository’s name ${searchVerb(text)} “${text}”`}
    />
  );
}
