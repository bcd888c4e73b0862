import { Button, type ButtonProps } from '@mantine/core';
import { useId } from 'react';
import styles from './page.module.css';

type ReasonedProps = ButtonProps & {
  /** Why the action is unavailable; null if it is available. */
  readonly reason: string | null;
  readonly onClick: () => void;
  readonly label?: string;
};

/** A button that stays visible when it is disabled, and says why. It keeps keyboard focus. */
export function ReasonedButton({ reason, onClick, label, children, ...rest }: ReasonedProps) {
  const id = useId();
  return (
    <div>
      <Button
        {...rest}
        {...(label === undefined ? {} : { 'aria-label': label })}
        {...(reason === null ? {} : { 'data-disabled': true, 'aria-disabled': true, 'aria-describedby': id })}
        onClick={(event) => {
          if (reason === null) onClick();
          else event.preventDefault();
        }}
      >
        {children}
      </Button>
      {reason !== null && (
        <p className={styles['reason']} id={id}>
          {reason}
        </p>
      )}
    </div>
  );
}
