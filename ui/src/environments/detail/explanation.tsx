import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/contract.ts';
import { CheckIcon, CrossIcon } from '../../shell/icons.tsx';
import { Problem } from '../../shell/problem.tsx';
import { explanationOf } from '../queries.ts';
import shared from '../../shell/page.module.css';
import { ProblemTable } from '../problem-table.tsx';
import type { Facts } from './facts.ts';
import styles from './detail.module.css';

type Step = Schemas['EnvironmentExplanation'];

const stepWords: Readonly<Record<Step['step'], string>> = {
  configuration: 'Configuration',
  fetch: 'Source',
  build: 'Build',
  start: 'Start',
  health: 'Health',
  route: 'Serving',
};

/** Shows what happened in each phase of the newest deploy, as the server explains it. */
export function Explanation({ environment }: Facts) {
  const { data, error, refetch } = useQuery(explanationOf(environment));
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton height={240} radius="lg" role="status" aria-label="Loading" />;
  return (
    <section className={shared['roomy']} aria-labelledby="why">
      <h2 id="why">What happened</h2>
      <p className={shared['hint']}>What its newest deploy did, step by step.</p>
      <ol className={styles['checks']}>
        {data.map(({ step, ok, message, fix, problems }) => (
          <li key={step} data-ok={String(ok)}>
            {ok === true && <CheckIcon size={16} />}
            {ok === false && <CrossIcon size={16} />}
            {ok === null && <i aria-hidden="true" />}
            <span>
              <b>{stepWords[step]}</b>
              <span className="unseen">{okWords(ok)}</span>
              <span className={styles['said']}>{message}</span>
              {fix !== undefined && problems === undefined && <span className={styles['fix']}>{fix}</span>}
            </span>
          </li>
        ))}
      </ol>
      {data.map(
        ({ step, problems }) => problems !== undefined && <ProblemTable key={step} problems={problems} />,
      )}
    </section>
  );
}

function okWords(ok: boolean | null): string {
  if (ok === null) return ', not reached:';
  return ok ? ', done:' : ', failed:';
}
