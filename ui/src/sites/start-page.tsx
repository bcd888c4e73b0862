import { Alert, Button, Text } from '@mantine/core';
import { useState } from 'react';
import type { Schemas } from '../api/contract.ts';
import { Problem } from '../shell/problem.tsx';
import { makeStartPage, type PublishedVersion } from './make-start-page.ts';
import { StartPageField } from './start-page-field.tsx';
import { useChange } from '../shell/use-change.ts';

type Warning = Schemas['SiteVersionReport']['report']['warnings'][number];
type WarningProps = {
  readonly of: Warning;
  /** The live version; null where it is not the reader’s to change, or not live. */
  readonly live: PublishedVersion | null;
};

/** Warnings that the author resolves by changing files. */
export function FileWarnings({ of }: { readonly of: readonly Warning[] }) {
  if (of.length === 0) return null;
  return (
    <Alert color="yellow" title="Some files may not work as you expect">
      {of.map(({ message }) => (
        <Text size="sm" key={message}>
          {message}
        </Text>
      ))}
    </Alert>
  );
}

/** The warning of a missing start page, with the way to choose one. */
export function StartPageWarning({ of: { message, pages }, live }: WarningProps) {
  const [page, setPage] = useState<string | null>(null);
  const [isDone, setDone] = useState(false);
  const { run, error, isBusy } = useChange({
    act: async () => {
      if (live !== null && page !== null) await makeStartPage(live, page);
    },
    said: 'A new version with this start page is live.',
    refresh: ['sites'],
    onDone: () => setDone(true),
  });
  if (isDone)
    return (
      <Alert color="green" role="status" title="A new version is live">
        The site’s address leads to <code>{page}</code>.
      </Alert>
    );
  return (
    <Alert color="yellow" title="There is no start page">
      <Text size="sm">{message}</Text>
      {live !== null && pages.length > 0 && (
        <>
          <StartPageField pages={pages} value={page} onChange={setPage} />
          {error !== undefined && <Problem error={error} />}
          <Button size="xs" mt="sm" disabled={page === null} loading={isBusy} onClick={run}>
            Publish with this start page
          </Button>
        </>
      )}
    </Alert>
  );
}
