import { Anchor, Radio } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Issuer } from '../trust/platforms.ts';
import { firstRule, type RuleDraft } from '../trust/rule-draft.ts';
import { RuleFields } from '../trust/rule-fields.tsx';
import { FieldGroup } from './field-group.tsx';
import styles from './new-key.module.css';

type RuleProps = {
  readonly rule: RuleDraft | null;
  /** The issuers of the key policy. */
  readonly issuers: readonly Issuer[];
  readonly error: string | undefined;
  readonly mistakes: Readonly<Record<string, string>>;
  readonly onChange: (rule: RuleDraft | null) => void;
};

/** The first trust rule of a federated key. */
export function RuleField({ rule, issuers, error, mistakes, onChange }: RuleProps) {
  const [first] = issuers;
  return (
    <FieldGroup
      field="rule"
      legend="Which pipeline?"
      description="A trust rule names the claims that an ID token must have. You can add more rules on the page of the key."
      error={error}
    >
      {first === undefined ? (
        <p className={styles['note']}>
          The key policy lists no issuer yet. Create the key, add an issuer under{' '}
          <Anchor component={Link} to="/admin/access-controls" inherit underline="always">
            Access controls
          </Anchor>
          , and then add a rule.
        </p>
      ) : (
        <>
          <Radio.Group
            aria-label="Which pipeline?"
            value={rule === null ? 'later' : 'now'}
            onChange={(next) => onChange(next === 'now' ? firstRule(first) : null)}
          >
            <div className={styles['choices']}>
              <Radio value="now" label="Add a rule now" />
              <Radio value="later" label="Later, on the page of the key" />
            </div>
          </Radio.Group>
          {rule !== null && (
            <RuleFields rule={rule} issuers={issuers} mistakes={mistakes} onChange={onChange} />
          )}
        </>
      )}
    </FieldGroup>
  );
}
