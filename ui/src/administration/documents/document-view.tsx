import { SegmentedControl, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { Problem } from '../../shell/problem.tsx';
import { queryClient } from '../../api/queries.ts';
import { announce } from '../../shell/announce.tsx';
import { AfterChange, type Made } from './after-change.tsx';
import type { Current, DocumentApi, DocumentProps } from './document-api.ts';
import { Editor } from './editor.tsx';
import { History } from './history.tsx';

/** A configuration document: an editor of the current version, or the history. The address selects one. */
export function DocumentView({ api, sections }: DocumentProps) {
  const { view = 'settings' } = useSearch({ strict: false });
  const navigate = useNavigate();
  const [made, setMade] = useState<Made>();
  const { data, error, refetch } = useQuery({
    queryKey: currentKey(api),
    // Refetched at each visit; no refetch replaces it while the user types.
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnReconnect: false,
    queryFn: ({ signal }) => api.read(signal),
  });

  function keep(change: Made): void {
    announce('Saved.');
    setMade(change);
    keepCurrent(api, change.now);
  }

  /** Another administrator saved first: refetches, so that the user sees the current version before trying again. */
  async function readAgain(): Promise<void> {
    await queryClient.invalidateQueries({ queryKey: ['admin'] });
  }

  return (
    <>
      <SegmentedControl
        aria-label="View"
        mb="md"
        value={view}
        onChange={(next) => void navigate({ to: '.', search: next === 'history' ? { view: next } : {} })}
        data={[
          { value: 'settings', label: 'Settings' },
          { value: 'history', label: 'History' },
        ]}
      />
      {data === undefined && error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && (
        <Skeleton height={420} radius="lg" role="status" aria-label="Loading" />
      )}
      {made !== undefined && made.now.etag === data?.etag && (
        <AfterChange
          key={`change ${data.etag}`}
          api={api}
          sections={sections}
          {...made}
          onReverted={(now) => keep({ before: made.now, now })}
          onStale={() => void readAgain()}
          onClose={() => setMade(undefined)}
        />
      )}
      {data !== undefined &&
        (view === 'history' ? (
          <History
            api={api}
            sections={sections}
            current={data}
            onMade={keep}
            onStale={() => void readAgain()}
          />
        ) : (
          <Editor key={data.etag} api={api} sections={sections} current={data} onMade={keep} />
        ))}
    </>
  );
}

const currentKey = (api: DocumentApi) => ['admin', 'document', api.name];

/** Shows the saved document immediately and refetches everything that depends on it. */
function keepCurrent(api: DocumentApi, now: Current): void {
  queryClient.setQueryData(currentKey(api), now);
  for (const part of ['history', 'keys', 'sites', 'agents'])
    void queryClient.invalidateQueries({ queryKey: ['admin', part] });
}
