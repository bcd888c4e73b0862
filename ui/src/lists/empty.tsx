import { Button, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import styles from './empty.module.css';

type EmptyProps = {
  readonly picture: ReactNode;
  readonly title: string;
  /** What to do first, each step with its reason. */
  readonly steps?: readonly { readonly do: string; readonly why: string }[];
  readonly children: ReactNode;
};

/** An empty list: explains its purpose and offers the first step. */
export function Empty({ picture, title, steps = [], children }: EmptyProps) {
  return (
    <section className={styles['card']}>
      <span className={styles['picture']}>{picture}</span>
      <Title order={2} size="h3">
        {title}
      </Title>
      {steps.length > 0 && (
        <ol className={styles['steps']}>
          {steps.map((step) => (
            <li key={step.do}>
              <b>{step.do}</b> {step.why}
            </li>
          ))}
        </ol>
      )}
      {children}
    </section>
  );
}

type NoMatchProps = {
  readonly children: ReactNode;
  /** Label of the button that removes the filters. */
  readonly clear?: string;
  readonly onClear?: () => void;
  /** A button with another action. */
  readonly button?: ReactNode;
};

/** One line in place of an empty list, such as when no item matches. */
export function NoMatch({ children, clear, onClear, button }: NoMatchProps) {
  return (
    <section className={styles['card']}>
      <p className={styles['line']}>{children}</p>
      {clear !== undefined && (
        <Button variant="default" size="xs" onClick={onClear}>
          {clear}
        </Button>
      )}
      {button}
    </section>
  );
}
