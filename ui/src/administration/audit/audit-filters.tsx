import { Button, Select, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { searchTextFrom } from '../../lists/search-text.ts';
import { PickField } from '../pick-field.tsx';
import styles from './audit.module.css';
import { type AuditSearch, auditSearch, outcomes, type Span, spans } from './audit-search.ts';
import { eventWords, outcomeWords } from './event-words.ts';

const spanWords: Readonly<Record<Span, string>> = {
  '1h': 'Last hour',
  '24h': 'Last 24 hours',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
};
const events = Object.entries(eventWords).map(([value, words]) => ({ value, label: `${words} (${value})` }));

type FilterProps = { readonly search: AuditSearch; readonly onChange: (next: AuditSearch) => void };

/** Selections take effect immediately; typed filters take effect on submit. */
export function AuditFilters({ search, onChange }: FilterProps) {
  const [typed, setTyped] = useState(search);
  const at = (name: 'target' | 'requestId' | 'from' | 'to') => ({
    value: typed[name] ?? '',
    onChange: ({ currentTarget }: { currentTarget: HTMLInputElement }) =>
      setTyped({ ...typed, [name]: searchTextFrom(currentTarget.value) }),
  });
  const send = (event: FormEvent) => {
    event.preventDefault();
    onChange(auditSearch(typed));
  };
  const isFiltered = Object.keys(search).length > 0;
  return (
    <form className={styles['filters']} onSubmit={send}>
      <Select
        label="Event"
        placeholder="Any event"
        radius="md"
        searchable
        clearable
        clearButtonProps={{ 'aria-label': 'Any event' }}
        data={events}
        value={search.event ?? null}
        onChange={(event) => onChange(auditSearch({ ...typed, event }))}
      />
      <Select
        label="Outcome"
        placeholder="Any outcome"
        radius="md"
        clearable
        clearButtonProps={{ 'aria-label': 'Any outcome' }}
        data={outcomes.map((value) => ({ value, label: outcomeWords[value][0] }))}
        value={search.outcome ?? null}
        onChange={(outcome) => onChange(auditSearch({ ...typed, outcome }))}
      />
      <Select
        label="When"
        placeholder="Any time"
        radius="md"
        clearable
        clearButtonProps={{ 'aria-label': 'Any time' }}
        data={spans.map((value) => ({ value, label: spanWords[value] }))}
        value={search.span ?? null}
        onChange={(span) => onChange(auditSearch({ ...typed, span, from: undefined, to: undefined }))}
      />
      <TextInput
        label="Request id"
        placeholder="From a response or a log"
        autoComplete="off"
        {...at('requestId')}
      />
      <details
        className={styles['more']}
        open={[search.actor, search.target, search.keyId, search.from, search.to].some(
          (one) => one !== undefined,
        )}
      >
        <summary>More filters</summary>
        <div className={styles['moreFields']}>
          <PickField
            of="actors"
            label="Actor"
            placeholder="Any actor"
            id={search.actor}
            onPick={(actor) => onChange(auditSearch({ ...typed, actor }))}
          />
          <TextInput label="Target" placeholder="Id of a key, site…" autoComplete="off" {...at('target')} />
          <PickField
            of="keys"
            label="Key"
            placeholder="Any key"
            id={search.keyId}
            onPick={(keyId) => onChange(auditSearch({ ...typed, keyId }))}
          />
          <TextInput type="date" label="From day" {...at('from')} />
          <TextInput type="date" label="To day" {...at('to')} />
        </div>
      </details>
      <div className={styles['send']}>
        <Button type="submit">Search</Button>
        {isFiltered && (
          <Button variant="default" onClick={() => onChange({})}>
            Clear filters
          </Button>
        )}
      </div>
    </form>
  );
}
