import { Radio, Textarea } from '@mantine/core';
import { FieldGroup } from './field-group.tsx';
import styles from './new-key.module.css';

type ReaderProps = {
  /** Null: the value is shown. */
  publicKey: string | null;
  error: string | undefined;
  onChange: (publicKey: string | null) => void;
};

/** Who reads the value: the person here, or only the holder of a private key. */
export function ReaderField({ publicKey, error, onChange }: ReaderProps) {
  return (
    <FieldGroup
      field="publicKey"
      legend="Who will use it?"
      description="The value of a key for someone else’s program need not pass through your hands."
      error={error}
    >
      <Radio.Group
        aria-label="Who will use it?"
        value={publicKey === null ? 'shown' : 'sealed'}
        onChange={(next) => onChange(next === 'sealed' ? '' : null)}
      >
        <div className={styles['choices']}>
          <Radio value="shown" label="I store it: show its value once" />
          <Radio value="sealed" label="Another program: paste its public key" />
        </div>
      </Radio.Group>
      {publicKey !== null && (
        <Textarea
          mt="sm"
          label="Public key"
          description="A recipient of age, a JWK, or an X25519 key in base64, as GitHub shows it for secrets."
          rows={3}
          spellCheck={false}
          autoComplete="off"
          value={publicKey}
          onChange={({ currentTarget }) => onChange(currentTarget.value)}
        />
      )}
    </FieldGroup>
  );
}
