import { Button, Skeleton } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { whoAmI } from '../api/queries.ts';
import { PageHead } from '../lists/page-head.tsx';
import { Checklist } from './checklist.tsx';
import { Overview } from './overview.tsx';
import { useSteps } from './steps.tsx';

/** The first page: the first steps, each checked by the server; later, what needs attention. */
export function StartPage() {
  const { data: me } = useQuery(whoAmI);
  const { steps, isKnown, isAnswered } = useSteps();
  const [isPutAway, putAway] = useLocalStorage({
    key: 'postern-first-steps-done',
    defaultValue: false,
    getInitialValueInEffect: false,
  });
  const left = steps.filter(({ isDone }) => !isDone).length;
  const isShown = !isPutAway || (isKnown && left > 0);
  const name = me?.principal.name ?? null;
  return (
    <>
      <PageHead
        title="Start"
        intro={
          <>
            {name !== null && (
              <>
                Hello, <bdi>{name}</bdi>.{' '}
              </>
            )}
            Your keys, sites and Environments, and what expires next.
          </>
        }
      >
        {isPutAway && !isShown && (
          <Button variant="default" onClick={() => putAway(false)}>
            Show the first steps
          </Button>
        )}
      </PageHead>
      {/* Shown all at once, so that no content moves under the pointer. */}
      {!isAnswered && <Skeleton height={420} radius="lg" role="status" aria-label="Loading" />}
      {isAnswered && isShown && (
        <Checklist
          steps={steps}
          isKnown={isKnown}
          left={left}
          {...(left === 0 && isKnown ? { onPutAway: () => putAway(true) } : {})}
        />
      )}
      {isAnswered && <Overview />}
    </>
  );
}
