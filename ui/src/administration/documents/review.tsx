import { Button, Group, Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Problem } from '../../shell/problem.tsx';
import { ApiProblem, sentenceOf } from '../../api/client.ts';
import common from '../admin.module.css';
import { Differences } from './differences.tsx';
import type { Current, DocumentProps } from './document-api.ts';
import { nameOf } from './fields.ts';
import { differences, type Tree } from './values.ts';

type ReviewProps = DocumentProps & {
  readonly base: Current;
  readonly next: Tree;
  readonly save: () => Promise<Current>;
  readonly confirm: string;
  readonly onSaved: (saved: Current) => void;
  /** Someone else changed the document since it was read. */
  readonly onConflict: () => void;
  /** The server names fields that are wrong. */
  readonly onMistake: (problem: ApiProblem) => void;
  readonly onClose: () => void;
};

/** Shows the changes and the result of a dry run, and then offers to save. */
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
      {trial.isPending && (
        <Skeleton height={48} radius="md" role="status" aria-label="Checking the changes" />
      )}
      {trial.error !== null && <Trouble error={trial.error} sections={sections} onExplain={explain} />}
      {trial.data}
      {error !== undefined && <Problem error={error} />}
      <Group justify="flex-end" gap="sm">
        <Button variant="default" onClick={onClose} disabled={isBusy}>
          Keep editing
        </Button>
        <Button loading={isBusy} disabled={!trial.isSuccess} onClick={() => void run()}>
          {confirm}
        </Button>
      </Group>
    </div>
  );
}

type TroubleProps = Pick<DocumentProps, 'sections'> & {
  readonly error: unknown;
  readonly onExplain: (error: unknown) => void;
};

function Trouble({ error, sections, onExplain }: TroubleProps) {
  const isOurs =
    error instanceof ApiProblem && (error.code === 'precondition_failed' || error.fields.length > 0);
  if (!isOurs) return <Problem error={error} />;
  return (
    <div className={common['stack']}>
      <Text size="sm">
        {error.code === 'precondition_failed'
          ? 'Someone else changed the document since you read it.'
          : 'Some of these values are not allowed:'}
      </Text>
      {error.code !== 'precondition_failed' && (
        <ul className={common['list']}>
          {error.fields.map(({ field, problem }) => (
            <li key={field}>
              <b>{nameOf(sections, field)}</b>: {sentenceOf(problem)}
            </li>
          ))}
        </ul>
      )}
      <Button variant="default" onClick={() => onExplain(error)}>
        {error.code === 'precondition_failed' ? 'See what changed' : 'Go to the setting'}
      </Button>
    </div>
  );
}
