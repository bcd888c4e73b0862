import { Button } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import { NoMatch } from '../../lists/empty.tsx';
import { AddressPages } from '../../lists/pages.tsx';
import { TableLoading } from '../../lists/table.tsx';
import common from '../admin.module.css';
import { PersonName } from '../person-name.tsx';
import { Differences } from './differences.tsx';
import type { Made } from './after-change.tsx';
import type { Current, DocumentProps, Version } from './document-api.ts';
import styles from './documents.module.css';
import { RevertDialog } from './revert-dialog.tsx';
import { differences, type Tree } from './values.ts';

type HistoryProps = DocumentProps & {
  readonly current: Current;
  readonly onMade: (made: Made) => void;
  /** Someone else changed the document since it was read. */
  readonly onStale: () => void;
};

/** Every version with its changes, and a button to revert to it. */
export function History({ api, sections, current, onMade, onStale }: HistoryProps) {
  const { page = 1 } = useSearch({ strict: false });
  const now = useNow();
  const ofPage = (one: number) => ({
    queryKey: ['admin', 'history', api.name, one],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.history(one, signal),
    placeholderData: keepPreviousData,
  });
  const { data, error, isPending, refetch } = useQuery(ofPage(page));
  // The oldest version of this page is compared with the newest of the next page.
  const older = useQuery({ ...ofPage(page + 1), enabled: data !== undefined && page < data.pages });
  const [reverting, setReverting] = useState<Version>();
  const items = data?.items ?? [];
  const isUnchanged = page === 1 && items.length <= 1;
  const before = (at: number): Tree | undefined =>
    (items[at + 1] ?? (page < (data?.pages ?? 0) ? older.data?.items[0] : undefined))?.value;

  function reverted(now: Current): void {
    setReverting(undefined);
    onMade({ before: current, now });
  }

  function stale(): void {
    setReverting(undefined);
    onStale();
  }

  if (isPending) return <TableLoading what="earlier versions" />;
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  return (
    <>
      {isUnchanged && <NoMatch>No changes yet. Every setting has its default.</NoMatch>}
      {!isUnchanged && (
        <ol className={styles['versions']} reversed>
          {items.map((one, place) => (
            <li key={one.version}>
              <div className={styles['versionHead']}>
                <span>
                  <b>Version {one.version}</b>
                  {one.version === current.version && ' · in effect'} ·{' '}
                  {one.version === 0 ? 'the built-in default' : <PersonName id={one.changedBy} />}
                  {one.changedAt !== null && (
                    <>
                      , <Moment at={one.changedAt} now={now} />
                    </>
                  )}
                </span>
                {one.version !== current.version && (
                  <Button
                    size="xs"
                    variant="default"
                    aria-label={
                      one.version === 0 ? 'Revert to the default' : `Revert to version ${one.version}`
                    }
                    onClick={() => setReverting(one)}
                  >
                    Revert
                  </Button>
                )}
              </div>
              <Change before={before(place)} after={one.value} sections={sections} />
            </li>
          ))}
        </ol>
      )}
      <AddressPages total={data?.pages ?? 0} />
      <RevertDialog
        api={api}
        sections={sections}
        current={current}
        to={reverting}
        onReverted={reverted}
        onStale={stale}
        onClose={() => setReverting(undefined)}
      />
    </>
  );
}

type ChangeProps = Pick<DocumentProps, 'sections'> & { before: Tree | undefined; after: Tree };

function Change({ before, after, sections }: ChangeProps) {
  if (before === undefined) return null;
  const found = differences(before, after);
  if (found.length === 0)
    return <span className={`quiet ${common['small']}`}>This version changed nothing.</span>;
  return <Differences of={found} sections={sections} />;
}
