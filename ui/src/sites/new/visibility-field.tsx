import { Radio } from '@mantine/core';
import type { Schemas } from '../../api/contract.ts';
import type { Visibility } from './draft.ts';
import styles from '../../shell/form.module.css';

type FieldProps = {
  readonly value: Visibility;
  readonly capabilities: Schemas['SiteCapabilities'];
  readonly error: string | undefined;
  readonly onChange: (value: Visibility) => void;
};

const choices = [
  [
    'private',
    'Only me',
    'Only you can open it, in a browser where you are signed in. No administrator and no key can.',
  ],
  ['public', 'Everyone', 'Anyone who has the address can open it without signing in.'],
] as const;

/** A disabled choice stays visible with its reason. */
export function VisibilityField({ value, capabilities, error, onChange }: FieldProps) {
  const { allowedVisibility, visibilityReasons } = capabilities;
  return (
    <Radio.Group
      className={styles['part']}
      data-field="visibility"
      label="Who may see it"
      value={value}
      error={error}
      onChange={(chosen) => onChange(chosen === 'public' ? 'public' : 'private')}
    >
      <div className={styles['choices']}>
        {choices.map(([choice, label, says]) => (
          <Radio
            key={choice}
            value={choice}
            label={label}
            disabled={!allowedVisibility.includes(choice)}
            description={visibilityReasons[choice] ?? says}
          />
        ))}
      </div>
    </Radio.Group>
  );
}
