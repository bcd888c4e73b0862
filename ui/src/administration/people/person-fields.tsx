import { Checkbox, MultiSelect, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/contract.ts';
import { groups } from '../queries.ts';
import { wrongIn } from '../wrong-in.ts';

/** Fields of a person, for new and existing accounts. */
export type PersonDraft = {
  readonly name: string;
  readonly email: string;
  readonly roles: readonly Schemas['Role'][];
  readonly groups: readonly string[];
};

type FieldProps = {
  readonly draft: PersonDraft;
  /** A refusal, to be shown beside the fields it names. */
  readonly problem: unknown;
  readonly onChange: (part: Partial<PersonDraft>) => void;
};

export function PersonFields({ draft, problem, onChange }: FieldProps) {
  const known = useQuery(groups({ limit: 100 }));
  const wrong = wrongIn(problem, 'email');
  return (
    <>
      <TextInput
        label="Name"
        autoComplete="off"
        data-autofocus
        required
        maxLength={100}
        value={draft.name}
        error={wrong['name']}
        onChange={({ currentTarget }) => onChange({ name: currentTarget.value })}
      />
      <TextInput
        label="E-mail address"
        description="Used to sign in."
        type="email"
        autoComplete="off"
        required
        value={draft.email}
        error={wrong['email']}
        onChange={({ currentTarget }) => onChange({ email: currentTarget.value })}
      />
      <RoleField roles={draft.roles} onChange={(roles) => onChange({ roles })} />
      {(known.data?.data.length ?? 0) > 0 && (
        <MultiSelect
          label="Groups"
          description="Members have the roles of the group."
          {...(draft.groups.length === 0 && { placeholder: 'No group' })}
          radius="md"
          searchable
          clearable
          clearButtonProps={{ 'aria-label': 'Remove from all groups' }}
          data={(known.data?.data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
          value={[...draft.groups]}
          onChange={(next) => onChange({ groups: next })}
        />
      )}
    </>
  );
}

const roleSays = {
  user: 'Can have sites and use keys.',
  admin: 'Can use all administration pages. Cannot open anyone else’s private site.',
} as const;

type RoleProps = {
  readonly roles: readonly Schemas['Role'][];
  readonly onChange: (roles: Schemas['Role'][]) => void;
};

export function RoleField({ roles, onChange }: RoleProps) {
  return (
    <Checkbox.Group
      label="Roles"
      value={[...roles]}
      onChange={(all) => onChange((['user', 'admin'] as const).filter((role) => all.includes(role)))}
    >
      {(['user', 'admin'] as const).map((role) => (
        <Checkbox key={role} mt="xs" value={role} label={role} description={roleSays[role]} />
      ))}
    </Checkbox.Group>
  );
}

/** True: the fields say what is wrong. */
export function isBesideFields(problem: unknown): boolean {
  return Object.keys(wrongIn(problem, 'email')).length > 0;
}
