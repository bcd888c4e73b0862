import { Button, Title } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { Command } from '../shell/command.tsx';
import { CheckIcon } from '../shell/icons.tsx';
import styles from './start.module.css';
import type { Step } from './steps.tsx';

type ChecklistProps = {
  readonly steps: readonly Step[];
  /** False until the server has answered for every step. */
  readonly isKnown: boolean;
  readonly left: number;
  /** Set only if every step is done. */
  readonly onPutAway?: () => void;
};

export function Checklist({ steps, isKnown, left, onPutAway }: ChecklistProps) {
  const next = steps.find(({ isDone }) => !isDone)?.id;
  return (
    <section className={styles['card']} aria-labelledby="first-steps">
      <div className={styles['bar']}>
        <Title order={2} size="h4" id="first-steps">
          {left === 0 && isKnown ? 'All first steps are done' : 'First steps'}
        </Title>
        {isKnown && (
          <span className="quiet">
            {steps.length - left} of {steps.length} done
          </span>
        )}
        {onPutAway !== undefined && (
          <Button variant="default" size="xs" onClick={onPutAway}>
            Hide the first steps
          </Button>
        )}
      </div>
      <ol className={styles['steps']}>
        {steps.map((step) => (
          <Item key={step.id} of={step} isNext={step.id === next && isKnown} />
        ))}
      </ol>
    </section>
  );
}

function Item({ of: step, isNext }: { of: Step; isNext: boolean }) {
  const navigate = useNavigate();
  return (
    <li data-done={step.isDone}>
      <span className={styles['mark']}>{step.isDone ? <CheckIcon /> : step.icon}</span>
      <details className={styles['step']} open={isNext} key={String(isNext)}>
        <summary>
          <span className={styles['title']}>{step.title}</span>
          {step.isDone && <span className={styles['done']}>Done</span>}
        </summary>
        <p>{step.why}</p>
        {step.commands?.map(({ text, of }) => (
          <div key={of} className={styles['command']}>
            <Command text={text} of={of} />
          </div>
        ))}
        {step.action !== undefined && (
          <Button
            size="sm"
            variant={isNext ? 'filled' : 'default'}
            onClick={() => void navigate({ href: step.action?.address ?? '/' })}
          >
            {step.action.label}
          </Button>
        )}
      </details>
    </li>
  );
}
