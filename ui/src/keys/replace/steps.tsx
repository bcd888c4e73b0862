import styles from './replace.module.css';

const steps = ['Choose its rights', 'Store the value', 'See it in use', 'Revoke the old key'] as const;

/** The current step of a replacement, from 1. A number after the last step: all are done. */
export function Steps({ at }: { at: number }) {
  return (
    <ol className={styles['steps']} aria-label="Steps">
      {steps.map((label, index) => {
        const state = index + 1 < at ? 'done' : index + 1 === at ? 'now' : 'later';
        return (
          <li key={label} data-state={state} aria-current={state === 'now' ? 'step' : undefined}>
            <i aria-hidden="true">{state === 'done' ? '✓' : index + 1}</i>
            <span>
              {label}
              {state === 'done' && <span className="unseen"> (done)</span>}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
