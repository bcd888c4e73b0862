import { Button, Select } from '@mantine/core';
import { useMemo, useState } from 'react';
import { countOf } from '../../shell/count.ts';
import { DownIcon, DownloadIcon, UpIcon } from '../../shell/icons.tsx';
import { Problem } from '../../shell/problem.tsx';
import { SearchField } from '../../lists/search-field.tsx';
import type { LogSource, LogState } from './follow-log.ts';
import { fileOf, matchesIn } from './log-lines.ts';
import { LogWindow } from './log-window.tsx';
import { useLog } from './use-log.ts';
import styles from './log.module.css';

/** A log: follows its end until the reader scrolls up, and can be searched and saved. */
export function LogView({ source }: { source: LogSource }) {
  // Another log starts empty, without a search.
  return <LogCard key={`${source.kind} ${source.id}`} source={source} />;
}

function LogCard({ source }: { source: LogSource }) {
  const { log, state } = useLog(source);
  const [search, setSearch] = useState('');
  const [service, setService] = useState<string | null>(null);
  const [at, setAt] = useState(0);
  const [isFollowing, setFollowing] = useState(true);
  const services = useMemo(() => [...new Set(log.lines.map((line) => line.service))], [log]);
  const lines = useMemo(
    () => (service === null ? log.lines : log.lines.filter((line) => line.service === service)),
    [log, service],
  );
  const matches = useMemo(() => matchesIn(lines, search), [lines, search]);
  const current = matches[at];

  function find(text: string): void {
    setSearch(text);
    setAt(0);
    if (text !== '') setFollowing(false);
  }
  function step(by: number): void {
    if (matches.length === 0) return;
    setFollowing(false);
    setAt((before) => (before + by + matches.length) % matches.length);
  }

  return (
    <section
      className={styles['card']}
      aria-label={source.kind === 'builds' ? 'Log of the deploy' : 'Log of the processes'}
    >
      <form
        className={styles['tools']}
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          step(1);
        }}
      >
        <SearchField label="Search the log" placeholder="Search the log" value={search} onChange={find} />
        <span className={styles['found']} role="status">
          {search !== '' &&
            (matches.length === 0 ? 'No match' : `${at + 1} of ${matches.length.toLocaleString()}`)}
        </span>
        <Button.Group>
          <Button
            variant="default"
            aria-label="Previous match"
            disabled={matches.length === 0}
            onClick={() => step(-1)}
          >
            <UpIcon size={15} />
          </Button>
          <Button type="submit" variant="default" aria-label="Next match" disabled={matches.length === 0}>
            <DownIcon size={15} />
          </Button>
        </Button.Group>
        {services.length > 1 && (
          <Select
            className={styles['service-filter'] ?? ''}
            aria-label="Service"
            placeholder="All services"
            clearable
            clearButtonProps={{ 'aria-label': 'All services' }}
            data={services}
            value={service}
            onChange={(next) => {
              setService(next);
              setAt(0);
            }}
          />
        )}
        <Button
          variant="default"
          leftSection={<DownloadIcon size={16} />}
          disabled={log.lines.length === 0}
          onClick={() => save(fileOf(lines), `${source.id}.log`)}
        >
          Save
        </Button>
      </form>
      {log.dropped > 0 && (
        <p className={styles['note']}>
          This page shows the last {countOf(lines.length, 'line')}. The API has the{' '}
          {countOf(log.dropped, 'line')} before them.
        </p>
      )}
      {lines.length === 0 ? (
        <p className={styles['empty']}>{emptyWords(source, state, log.lines.length > 0)}</p>
      ) : (
        <LogWindow
          lines={lines}
          hasService={services.length > 1 && service === null}
          search={search}
          current={current}
          isFollowing={isFollowing}
          onFollow={setFollowing}
        />
      )}
      <div className={styles['foot']}>
        <span role="status" className={styles['state']} data-state={state.kind}>
          {stateWords[state.kind]}
        </span>
        <span className="quiet">{countOf(lines.length, 'line')}</span>
        {!isFollowing && lines.length > 0 && (
          <Button size="compact-sm" variant="light" onClick={() => setFollowing(true)}>
            {state.kind === 'ended' ? 'Go to the end' : 'Follow the end'}
          </Button>
        )}
      </div>
      {state.kind === 'refused' && <Problem error={state.error} />}
    </section>
  );
}

const stateWords: Readonly<Record<LogState['kind'], string>> = {
  live: 'Live',
  waiting: 'Connecting…',
  ended: 'Ended',
  refused: 'Not available',
};

function emptyWords(source: LogSource, { kind }: LogState, hasOthers: boolean): string {
  if (hasOthers) return 'This service has printed nothing.';
  if (kind === 'ended')
    return source.kind === 'builds'
      ? 'Nothing was printed: no command ran, or every result was reused.'
      : 'This log no longer exists.';
  return kind === 'live' ? 'Nothing has been printed yet.' : 'Loading the log.';
}

function save(text: string, name: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
