import { Select, type SelectProps } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { keyAt } from '../keys/queries.ts';
import { searchTextFrom } from '../lists/search-text.ts';
import { managedKeys, people, person } from './queries.ts';

type Option = { readonly value: string; readonly label: string };

type PickProps = Pick<SelectProps, 'label' | 'aria-label' | 'placeholder' | 'className'> & {
  /** Actors are people, keys, and these two, which are in no list. */
  readonly of: 'people' | 'keys' | 'actors';
  readonly id: string | undefined;
  readonly onPick: (id: string | undefined) => void;
};

const others: readonly Option[] = [
  { value: 'anonymous', label: 'Unknown (anonymous)' },
  { value: 'system', label: 'Postern (system)' },
];

/** Picks a person or a key by name. The server searches, because there may be too many for a list. */
export function PickField({ of, id, onPick, placeholder = 'Any', ...field }: PickProps) {
  const [text, setText] = useState('');
  const [isOpen, setOpen] = useState(false);
  const picked = usePicked(id);
  const found = useFound(of, isOpen, text === picked?.label ? '' : text);
  return (
    <Select
      {...field}
      placeholder={placeholder}
      radius="md"
      searchable
      clearable
      clearButtonProps={{ 'aria-label': placeholder }}
      value={id ?? null}
      data={picked === undefined ? found : [picked, ...found.filter(({ value }) => value !== picked.value)]}
      filter={({ options }) => options}
      onDropdownOpen={() => setOpen(true)}
      onSearchChange={(next) => setText(searchTextFrom(next).trim())}
      onChange={(next) => onPick(next ?? undefined)}
      nothingFoundMessage={of === 'people' ? 'No person has this name' : 'Nothing has this name'}
    />
  );
}

/** The selection by name. An id without a name, such as that of a deleted account, is shown as the id. */
function usePicked(id = ''): Option | undefined {
  const ofPerson = useQuery({ ...person(id), enabled: id.startsWith('usr_') });
  const ofKey = useQuery({ ...keyAt('/admin/user-keys', id), enabled: /^[0-9A-Za-z]{12}$/.test(id) });
  if (id === '') return undefined;
  if (ofPerson.data !== undefined) return personOption(ofPerson.data);
  if (ofKey.data !== undefined) return keyOption(ofKey.data);
  return others.find(({ value }) => value === id) ?? { value: id, label: id };
}

function useFound(of: PickProps['of'], isOpen: boolean, text: string): readonly Option[] {
  const [search] = useDebouncedValue(text, 200);
  const query = { limit: 20, ...(search === '' ? {} : { search }) };
  const foundPeople = useQuery({ ...people(query), enabled: isOpen && of !== 'keys' });
  const foundKeys = useQuery({
    ...managedKeys({ ...query, kind: 'all' }),
    enabled: isOpen && of !== 'people',
  });
  const found = [
    ...(foundPeople.data?.data ?? []).map(personOption),
    ...(foundKeys.data?.data ?? []).map(keyOption),
    ...others.filter(({ label }) => of === 'actors' && label.toLowerCase().includes(text.toLowerCase())),
  ];
  const isId = of !== 'people' && /^\w{12,}$/.test(text);
  return found.length === 0 && isId ? [{ value: text, label: text }] : found;
}

type Person = { readonly id: string; readonly name: string; readonly email: string | null };

function personOption({ id, name, email }: Person): Option {
  return { value: id, label: email === null ? name : `${name} (${email})` };
}

function keyOption({ id, name }: { readonly id: string; readonly name: string }): Option {
  return { value: id, label: `${name} (${id})` };
}
