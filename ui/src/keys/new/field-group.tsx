import type { ReactNode } from 'react';
import { useId } from 'react';
import type { Field } from './draft.ts';
import styles from './new-key.module.css';

type GroupProps = {
  /** `overlap` is asked for when a key is replaced. */
  field: Field | 'overlap';
  legend: string;
  description: string;
  error: string | undefined;
  children: ReactNode;
};

/** Controls that answer one question together, with its mistake beside them. */
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
