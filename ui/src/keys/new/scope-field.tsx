import { Button, SegmentedControl } from '@mantine/core';
import { useQueries } from '@tanstack/react-query';
import { type Access, type Level, presets, type Resource, resources, scopesOf } from './access.ts';
import { FieldGroup } from './field-group.tsx';
import styles from './scope-field.module.css';
import { decisionOn, type Scope } from '../queries.ts';

type ScopeProps = {
  access: Access;
  allowed: readonly string[];
  /** The reason why scopes are not allowed, if it is not the policy. Then the form suggests none either. */
  limitedBy?: string;
  error: string | undefined;
  /** A service key has no owner whose role could lack a right. */
  isForService: boolean;
  onChange: (access: Access) => void;
};

/** One row for each thing a key may reach. A forbidden level is disabled and shows the reason. */
export function ScopeField(props: ScopeProps) {
  const { access, allowed, limitedBy, error, isForService, onChange } = props;
  const canHave = (scopes: readonly string[]) => scopes.every((scope) => allowed.includes(scope));
  return (
    <FieldGroup
      field="scopes"
      legend="What it may do"
      description={
        isForService
          ? 'By its scopes alone. Write includes read.'
          : 'Never more than you can. Write includes read.'
      }
      error={error}
    >
      {limitedBy === undefined && (
        <div className={styles['presets']}>
          {presets
            .filter((preset) => canHave(scopesOf(preset.access)))
            .map((preset) => (
              <Button
                key={preset.label}
                size="compact-sm"
                variant="default"
                onClick={() => onChange(preset.access)}
              >
                {preset.label}
              </Button>
            ))}
        </div>
      )}
      {resources.map(({ id, label, says }) => (
        <div key={id} className={styles['row']}>
          <div>
            <b id={`${id}-label`}>{label}</b>
            <span className={styles['says']}>
              {explain(
                access[id],
                says,
                missingOf(id, allowed),
                limitedBy ?? 'The key policy does not allow',
              )}
            </span>
          </div>
          <SegmentedControl
            aria-labelledby={`${id}-label`}
            size="sm"
            value={access[id]}
            onChange={(level) => onChange({ ...access, [id]: level })}
            data={[
              { value: 'none', label: 'None' },
              { value: 'read', label: 'Read', disabled: !allowed.includes(`${id}:read`) },
              { value: 'write', label: 'Write', disabled: !allowed.includes(`${id}:write`) },
            ]}
          />
        </div>
      ))}
      {!isForService && <Useless scopes={scopesOf(access)} />}
    </FieldGroup>
  );
}

function missingOf(id: Resource, allowed: readonly string[]): string[] {
  return ['read', 'write'].filter((level) => !allowed.includes(`${id}:${level}`));
}

function explain(
  level: Level,
  says: Record<'read' | 'write', string>,
  missing: readonly string[],
  limitedBy: string,
): string {
  if (level !== 'none') return `It may ${says[level]}.`;
  return missing.length === 0 ? 'No access.' : `No access. ${limitedBy} ${missing.join(' or ')}.`;
}

/** A key may have a scope that its owner's role does not allow: every use checks the role. */
function Useless({ scopes }: { scopes: readonly Scope[] }) {
  const decisions = useQueries({ queries: scopes.map((scope) => decisionOn(scope)) });
  const missing = decisions.flatMap(({ data }, at) => {
    const role = data?.rules.find(({ rule, passed }) => rule === 'role' && !passed);
    return role === undefined ? [] : [{ scope: scopes[at], detail: role.detail }];
  });
  return missing.map(({ scope, detail }) => (
    <p key={scope} className={styles['useless']}>
      You cannot use <code>{scope}</code> now. {detail}
    </p>
  ));
}
