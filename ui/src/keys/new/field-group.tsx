import type { ReactNode } from 'react';
import { useId } from 'react';
import type { Field } from './draft.ts';
import styles from './new-key.module.css';

type GroupProps = {
  /** `overlap` is a field of the replacement only; `credential` has no mistakes. */
  field: Field | 'overlap' | 'credential';
  legend: string;
  description: string;
  error: string | undefined;
  children: ReactNode;
};

/** Controls of one field, with its error beside them. */
export function FieldGroup({ field, legend, description, error, children }: GroupProps) {
  const id = useId();
  return (
    <fieldset
      data-field={field}
      className={styles['part']}
      aria-describedby={error === undefined ? `${id}-hint` : `${id}-hint ${id}-error`}
    >
      <legend>{legend}</legend>
      <p className={styles['hint']} id={`${id}-hint`}>
        {description}
      </p>
      {children}
      {error !== undefined && (
        <p className={styles['error']} id={`${id}-error`} role="alert">
          {error}
        </p>
      )}
    </fieldset>
  );
}
