import { Checkbox, Radio } from '@mantine/core';
import type { Key } from './key-words.ts';
import type { FieldErrors } from './new/draft.ts';
import { FieldGroup } from './new/field-group.tsx';
import { Picker } from './new/repository-field.tsx';
import { ScopeField } from './new/scope-field.tsx';
import { type Rights, withReads } from './rights.ts';
import styles from './rights-fields.module.css';

type RightsProps = {
  readonly of: Key;
  readonly rights: Rights;
  readonly errors: FieldErrors;
  readonly onChange: (field: 'scopes' | 'repositories', part: Partial<Rights>) => void;
};

/** Scopes and repositories of an existing key. The user can remove them, but not add any. */
export function RightsFields({ of: key, rights, errors, onChange }: RightsProps) {
  return (
    <>
      <ScopeField
        isForService={key.type === 'service'}
        access={rights.access}
        allowed={withReads(key.scopes)}
        limitedBy="This key does not have"
        error={errors.scopes}
        onChange={(access) => onChange('scopes', { access })}
      />
      <FieldGroup
        field="repositories"
        legend="Repositories"
        description="You can only remove repositories."
        error={errors.repositories}
      >
        {key.repositories.mode === 'all' ? (
          <FromAll rights={rights} onChange={(part) => onChange('repositories', part)} />
        ) : (
          <Checkbox.Group
            aria-label="Repositories"
            value={[...rights.repositories]}
            onChange={(repositories) => onChange('repositories', { repositories })}
          >
            <div className={styles['boxes']}>
              {key.repositories.repositories.map((name) => (
                <Checkbox key={name} value={name} label={name} />
              ))}
              {key.repositories.repositories.length === 0 && (
                <span className="quiet">The key no longer reaches any repository.</span>
              )}
            </div>
          </Checkbox.Group>
        )}
      </FieldGroup>
    </>
  );
}

function FromAll({ rights, onChange }: { rights: Rights; onChange: (part: Partial<Rights>) => void }) {
  return (
    <>
      <div className={styles['choices']}>
        <Radio
          name="reach"
          label="All repositories, unchanged"
          checked={rights.reach === 'all'}
          onChange={() => onChange({ reach: 'all' })}
        />
        <Radio
          name="reach"
          label="Only those I choose"
          checked={rights.reach === 'selected'}
          onChange={() => onChange({ reach: 'selected' })}
        />
      </div>
      {rights.reach === 'selected' && (
        <Picker
          chosen={rights.repositories}
          max={50}
          onChange={(repositories) => onChange({ repositories })}
        />
      )}
    </>
  );
}
