import type { Schemas } from '../../api/contract.ts';
import { CheckIcon, CrossIcon } from '../../shell/icons.tsx';
import { durationInWords } from '../../shell/time.ts';
import type { Deploy } from '../environment-words.ts';
import styles from './deploys.module.css';

type Step = Schemas['BuildStep'];

/** The steps of a deploy with their durations, on one time axis. */
export function StepTimeline({ of: deploy, now }: { of: Deploy; now: number }) {
  const { steps } = deploy;
  if (steps.length === 0)
    return (
      <p className={styles['none']}>{deploy.endedAt === null ? 'No step has begun.' : 'No step began.'}</p>
    );
  const times = steps.flatMap(({ startedAt, endedAt }) =>
    [startedAt, endedAt].flatMap((at) => at ?? []).map(Date.parse),
  );
  const begin = Math.min(...times);
  const end = Math.max(...times, ...(steps.some(isRunning) ? [now] : []));
  return (
    <ol className={styles['steps']}>
      {ordered(steps).map((step) => (
        <li key={`${step.step} ${step.service}`} data-status={step.status}>
          <StepMark of={step.status} />
          <span className={styles['step']}>
            {stepWords[step.step]} {step.service !== '' && <b>{step.service}</b>}
            {step.reused && <span className={styles['reused']}>Cached</span>}
            {step.message !== null && <span className="subline">{step.message}</span>}
          </span>
          <span className={styles['took']}>{tookWords(step, now)}</span>
          <Bar of={step} begin={begin} end={end} now={now} />
        </li>
      ))}
    </ol>
  );
}

const order = ['fetch', 'build', 'start', 'health', 'route'] as const;

const stepWords: Readonly<Record<Step['step'], string>> = {
  fetch: 'Read the branch',
  build: 'Build',
  start: 'Start',
  health: 'Check the health of',
  route: 'Go live',
};

const statusWords: Readonly<Record<Step['status'], string>> = {
  waiting: 'Waiting',
  running: 'Under way',
  done: 'Done',
  failed: 'Failed',
  cancelled: 'Cancelled',
};

function ordered(steps: readonly Step[]): Step[] {
  return steps.toSorted(
    (a, b) => order.indexOf(a.step) - order.indexOf(b.step) || a.service.localeCompare(b.service),
  );
}

function StepMark({ of: status }: { of: Step['status'] }) {
  return (
    <span className={styles['mark']}>
      {status === 'done' && <CheckIcon size={14} />}
      {(status === 'failed' || status === 'cancelled') && <CrossIcon size={14} />}
      <span className="unseen">{statusWords[status]}: </span>
    </span>
  );
}

/** For users who cannot see it, the duration is in the text beside it. */
function Bar({ of: step, begin, end, now }: { of: Step; begin: number; end: number; now: number }) {
  const { startedAt } = step;
  const whole = Math.max(end - begin, 1);
  if (startedAt === null) return <span className={styles['track']} aria-hidden="true" />;
  const left = ((Date.parse(startedAt) - begin) / whole) * 100;
  const width = (durationOf(step, now) / whole) * 100;
  return (
    <span className={styles['track']} aria-hidden="true">
      <i style={{ left: `${left}%`, width: `${Math.min(width, 100 - left)}%` }} />
    </span>
  );
}

function isRunning({ status }: Step): boolean {
  return status === 'running';
}

function durationOf({ startedAt, endedAt }: Step, now: number): number {
  if (startedAt === null) return 0;
  return Math.max(0, (endedAt === null ? now : Date.parse(endedAt)) - Date.parse(startedAt));
}

function tookWords(step: Step, now: number): string {
  if (step.startedAt === null) return step.status === 'done' ? '' : statusWords[step.status];
  if (step.endedAt === null && !isRunning(step)) return statusWords[step.status];
  return durationInWords(durationOf(step, now));
}
