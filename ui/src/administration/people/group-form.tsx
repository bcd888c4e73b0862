import { Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Problem } from '../../shell/problem.tsx';
import { useChange } from '../../shell/use-change.ts';
import { DialogForm } from '../dialog-form.tsx';
import { wrongIn } from '../wrong-in.ts';
import { RoleField } from './person-fields.tsx';
import { FreshSignIn } from '../../shell/fresh-sign-in.tsx';

type FormProps = {
  /** Without it, a new one. */
  readonly of?: Schemas['Group'];
  readonly all: readonly Schemas['Group'][];
  readonly onClose: () => void;
  readonly onDone: () => void;
};

export function GroupForm({ of: group, all, onClose, onDone }: FormProps) {
  const [name, setName] = useState(group?.name ?? '');
  const [parentId, setParent] = useState(group?.parentId ?? null);
  const [roles, setRoles] = useState<Schemas['Role'][]>(group?.roles ?? []);
  const body = { name, parentId, roles };
  const { run, error, isBusy } = useChange({
    act: () =>
      group === undefined
        ? unwrap(api.POST('/groups', { body }))
        : unwrap(api.PATCH('/groups/{id}', { params: { path: { id: group.id } }, body })),
    said: 'Saved.',
    refresh: ['admin', 'groups'],
    onClose,
    onDone,
  });
  const wrong = wrongIn(error, 'name');
  return (
    <FreshSignIn>
      <DialogForm
        send={group === undefined ? 'Create group' : 'Save'}
        isBusy={isBusy}
        onSend={run}
        onClose={onClose}
      >
        <TextInput
          label="Name"
          data-autofocus
          required
          maxLength={100}
          autoComplete="off"
          value={name}
          error={wrong['name']}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <Select
          label="Parent group"
          description="The group also has the roles of its parent."
          placeholder="None"
          radius="md"
          clearable
          clearButtonProps={{ 'aria-label': 'No parent group' }}
          data={all.filter(({ id }) => id !== group?.id).map(({ id, name: label }) => ({ value: id, label }))}
          value={parentId}
          onChange={setParent}
        />
        <RoleField roles={roles} onChange={setRoles} />
        {error !== undefined && wrong['name'] === undefined && <Problem error={error} />}
      </DialogForm>
    </FreshSignIn>
  );
}
