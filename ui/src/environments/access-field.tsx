import { Radio } from '@mantine/core';
import { type Access, accessChoices, isAccess } from './environment-words.ts';
import styles from '../shell/page.module.css';

type FieldProps = {
  readonly className?: string;
  /** The page already shows a title above it. */
  readonly hasTitle?: boolean;
  readonly value: Access;
  /** What the policy allows. */
  readonly allowed: readonly Access[];
  readonly error: string | undefined;
  /** Why this person cannot choose the access, apart from the policy. */
  readonly reasonAgainst?: (access: Access) => string | undefined;
  readonly onChange: (access: Access) => void;
};

/** Lets the user choose who may open the Environment. A disabled choice stays visible with its reason. */
export function AccessField({
  className,
  hasTitle = false,
  value,
  allowed,
  error,
  reasonAgainst,
  onChange,
}: FieldProps) {
  return (
    <Radio.Group
      className={className ?? ''}
      data-field="access"
      label="Who may open it"
      {...(hasTitle && { labelProps: { className: 'unseen' } })}
      value={value}
      error={error}
      onChange={(chosen) => {
        if (isAccess(chosen)) onChange(chosen);
      }}
    >
      <div className={styles['choices']}>
        {accessChoices.map(({ value: choice, label, says }) => {
          const reason = allowed.includes(choice)
            ? reasonAgainst?.(choice)
            : 'The Environment policy does not allow this.';
          return (
            <Radio
              key={choice}
              value={choice}
              label={label}
              disabled={reason !== undefined}
              description={reason ?? says}
            />
          );
        })}
      </div>
    </Radio.Group>
  );
}
