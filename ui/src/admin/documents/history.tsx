import { Button } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { queryClient } from '../../api/queries.ts';
import { announce } from '../../app/announce.tsx';
import { Moment } from '../../app/moment.tsx';
import { useNow } from '../../app/now.ts';
import { Problem } from '../../app/problem.tsx';
import { NoMatch, NoMatchLine } from '../../lists/empty.tsx';
import { Pages } from '../../lists/pages.tsx';
import { TableLoading } from '../../lists/table.tsx';
import { Dialog } from '../act.tsx';
import common from '../admin.module.css';
import { PersonName } from '../person-name.tsx';
import { Differences } from './differences.tsx';
import { keepCurrent } from './current.ts';
import type { Current, DocumentProps, Version } from './document-api.ts';
import styles from './documents.module.css';
import { fieldsOf } from './fields.ts';
import { Review } from './review.tsx';
import { differences, type Tree, withAt } from './values.ts';

type HistoryProps = DocumentProps & {
  readonly current: Current;
  readonly page: number;
  readonly onPage: (page: number) => void;
};

/** Every version with what it changed, and the way back to it. */
export function History({ api, sections, current, page, onPage }: HistoryProps) {
  const now = useNow();
  const ofPage = (one: number) => ({
    queryKey: ['admin', 'history', api.name, one],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.history(one, signal),
    placeholderData: keepPreviousData,
  });
  const { data, error, isPending, refetch } = useQuery(ofPage(page));
  // The oldest of this page is told against the newest of the next.
  const older = useQuery({ ...ofPage(page + 1), enabled: data !== undefined && page < data.pages });
  const [reverting, setReverting] = useState<Version>();
  const start: Version = { version: 0, changedAt: null, changedBy: null, value: standardOf(sections) };
  const items = data?.items ?? [];
  const before = (at: number): Tree | undefined =>
    (items[at + 1] ?? (page < (data?.pages ?? 0) ? older.data?.items[0] : start))?.value;

  function reverted(now: Current): void {
    setReverting(undefined);
    announce('The earlier version is in force.');
    keepCurrent(api, now);
  }

  /** Somebody else was faster: what is in force now is shown, and can be looked at before trying again. */
  async function readAgain(): Promise<void> {
    setReverting(undefined);
    await queryClient.invalidateQueries({ queryKey: ['admin'] });
  }

  if (isPending) return <TableLoading what="earlier versions" />;
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  return (
    <>
      {items.length === 0 && (
        <NoMatch>
          <NoMatchLine>Nobody has changed anything yet. Everything is as an installation begins.</NoMatchLine>
        </NoMatch>
      )}
      {items.length > 0 && (
        <ol className={styles['versions']} reversed>
          {items.map((one, place) => (
            <li key={one.version}>
              <div className={styles['versionHead']}>
                <span>
                  <b>Version {one.version}</b>
                  {one.version === current.version && ' · in force'} · <PersonName id={one.changedBy} />
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
                    aria-label={`Bring back version ${one.version}`}
                    onClick={() => setReverting(one)}
                  >
                    Bring back
                  </Button>
                )}
              </div>
              <Change before={before(place)} after={one.value} sections={sections} />
            </li>
          ))}
          {page >= (data?.pages ?? 0) && (
            <li>
              <div className={styles['versionHead']}>
                <span>
                  <b>Version 0</b> · the built-in default
                </span>
                <Button
                  size="xs"
                  variant="default"
                  aria-label="Bring back the default"
                  onClick={() => setReverting(start)}
                >
                  Bring back
                </Button>
              </div>
            </li>
          )}
        </ol>
      )}
      <Pages page={page} total={data?.pages ?? 0} onChange={onPage} />
      <Dialog
        isOpen={reverting !== undefined}
        size="lg"
        title={`Bring version ${reverting?.version ?? ''} back?`}
        onClose={() => setReverting(undefined)}
      >
        {reverting !== undefined && (
          <Review
            api={api}
            sections={sections}
            base={current}
            next={reverting.value}
            save={() => api.revert(reverting.version, current.etag)}
            confirm="Bring it back for everybody"
            onSaved={reverted}
            onConflict={() => void readAgain()}
            onMistake={() => void readAgain()}
            onClose={() => setReverting(undefined)}
          />
        )}
      </Dialog>
    </>
  );
}

type ChangeProps = Pick<DocumentProps, 'sections'> & { before: Tree | undefined; after: Tree };

function Change({ before, after, sections }: ChangeProps) {
  if (before === undefined) return null;
  const found = differences(before, after);
  if (found.length === 0)
    return <span className={`quiet ${common['small']}`}>Nothing was other than before.</span>;
  return <Differences of={found} sections={sections} />;
}

function standardOf(sections: DocumentProps['sections']): Tree {
  let tree: Tree = {};
  for (const { path, standard } of fieldsOf(sections)) tree = withAt(tree, path, standard);
  return tree;
}
