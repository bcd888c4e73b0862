import { Radio } from '@mantine/core';
import type { Issuer } from '../trust/platforms.ts';
import { firstRule } from '../trust/rule-draft.ts';
import type { Draft } from './draft.ts';
import { FieldGroup } from './field-group.tsx';
import styles from './new-key.module.css';

type CredentialProps = {
  readonly credential: Draft['credential'];
  /** The issuers of the key policy. */
  readonly issuers: readonly Issuer[];
  readonly onChange: (part: Pick<Draft, 'credential' | 'rule'>) => void;
};

/** Whether a service key has a value. */
export function CredentialField({ credential, issuers, onChange }: CredentialProps) {
  const [first] = issuers;
  return (
    <FieldGroup
      field="credential"
      legend="Value"
      description="A federated key has no value that could leak. The platform of a pipeline signs an ID token for each job, and the trust rules of the key say which ones it accepts."
      error={undefined}
    >
      <Radio.Group
        aria-label="Value"
        value={credential}
        onChange={(next) =>
          onChange(
            next === 'federated'
              ? { credential: next, rule: first === undefined ? null : firstRule(first) }
              : { credential: 'value', rule: null },
          )
        }
      >
        <div className={styles['choices']}>
          <Radio value="value" label="A value, which a program stores" />
          <Radio value="federated" label="No value: a federated key, for pipelines" />
        </div>
      </Radio.Group>
    </FieldGroup>
  );
}
