import { Select, type SelectProps } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { repositoriesNamed } from '../api/queries.ts';
import { searchTextFrom } from '../lists/search-text.ts';

type SelectedProps = Pick<
  SelectProps,
  'label' | 'description' | 'error' | 'aria-label' | 'className' | 'placeholder' | 'required'
> & {
  readonly value: string | undefined;
  readonly isClearable?: boolean;
  readonly onChange: (fullName: string | undefined) => void;
};

/** Picks a registered repository. The server searches. */
export function RepositorySelect({ value, isClearable = false, onChange, ...field }: SelectedProps) {
  const [text, setText] = useState('');
  const [search] = useDebouncedValue(text === value ? '' : text.trim(), 200);
  const { data } = useQuery(repositoriesNamed(search));
  const names = data?.data.map(({ fullName }) => fullName) ?? [];
  return (
    <Select
      {...field}
      searchable
      clearable={isClearable}
      clearButtonProps={{ 'aria-label': field.placeholder ?? 'Clear' }}
      allowDeselect={false}
      value={value ?? null}
      data={[...new Set([...(value === undefined ? [] : [value]), ...names])]}
      onSearchChange={(next) => setText(searchTextFrom(next))}
      onChange={(next) => onChange(next ?? undefined)}
      nothingFoundMessage="No registered repository has this name"
    />
  );
}
