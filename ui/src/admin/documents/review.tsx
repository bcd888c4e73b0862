import { Button, Group, Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Problem } from '../../app/problem.tsx';
import { ApiProblem } from '../../api/client.ts';
import common from '../admin.module.css';
import { Differences } from './differences.tsx';
import type { Current, DocumentProps } from './document-api.ts';
import { differences, type Tree } from './values.ts';

type ReviewProps = DocumentProps & {
  readonly base: Current;
  readonly next: Tree;
  readonly save: () => Promise<Current>;
  readonly confirm: string;
  readonly onSaved: (saved: Current) => void;
  /** Somebody else changed the document since it was read. */
  readonly onConflict: () => void;
  /** The server names fields that are wrong. */
  readonly onMistake: (problem: ApiProblem) => void;
  readonly onClose: () => void;
};

/** What would change, what it would do today, and only then the change. */
export function Review(props: ReviewProps) {
  const { api, sections, base, next, save, confirm, onSaved, onConflict, onMistake, onClose } = props;
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const trial = useQuery({
    queryKey: ['admin', 'trial', api.name, base.etag, next],
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    queryFn: () => api.tryOut(next, base.etag),
  });

  function explain(failure: unknown): void {
    if (failure instanceof ApiProblem && failure.code === 'precondition_failed') return onConflict();
    if (failure instanceof ApiProblem && failure.fields.length > 0) return onMistake(failure);
    setError(failure);
  }

  async function run(): Promise<void> {
    setBusy(true);
    setError(undefined);
    try {
      onSaved(await save());
    } catch (failure) {
      explain(failure);
    } finally {
      setBusy(false);
    }
  }

  return (
    <div className={common['stack']}>
      <Differences of={differences(base.value, next)} sections={sections} />
      {trial.isPending && <Skeleton height={48} radius="md" role="status" aria-label="Trying it out" />}
      {trial.error !== null && <Trouble error={trial.error} onExplain={explain} />}
      {trial.data}
      {error !== undefined && <Problem error={error} />}
      <Group justify="flex-end" gap="sm">
        <Button variant="default" onClick={onClose} disabled={isBusy}>
          Go on editing
        </Button>
        <Button loading={isBusy} disabled={!trial.isSuccess} onClick={() => void run()}>
          {confirm}
        </Button>
      </Group>
    </div>
  );
}

function Trouble({ error, onExplain }: { error: unknown; onExplain: (error: unknown) => void }) {
  const isOurs =
    error instanceof ApiProblem && (error.code === 'precondition_failed' || error.fields.length > 0);
  if (!isOurs) return <Problem error={error} />;
  return (
    <div className={common['stack']}>
      <Text size="sm">
        {error.code === 'precondition_failed'
          ? 'Somebody else changed the document since you read it.'
          : 'The server does not take some of these values.'}
      </Text>
      <Button variant="default" onClick={() => onExplain(error)}>
        {error.code === 'precondition_failed' ? 'See what changed' : 'Show what is wrong'}
      </Button>
    </div>
  );
}
