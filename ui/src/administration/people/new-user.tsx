import { useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import { Problem } from '../../shell/problem.tsx';
import { useChange } from '../../shell/use-change.ts';
import { DialogForm } from '../dialog-form.tsx';
import { isBesideFields, type PersonDraft, PersonFields } from './person-fields.tsx';
import type { NewPassword } from './shown-once.tsx';
import { FreshSignIn } from '../../shell/fresh-sign-in.tsx';

type NewProps = { readonly onClose: () => void; readonly onCreated: (shown: NewPassword) => void };

/** A form for an account with a generated password, so that no administrator types one. */
export function NewUser({ onClose, onCreated }: NewProps) {
  const [draft, setDraft] = useState<PersonDraft>({ name: '', email: '', roles: ['user'], groups: [] });
  const { run, error, isBusy } = useChange({
    async act() {
      const { roles, groups, ...who } = draft;
      const body = { ...who, roles: [...roles], groups: [...groups] };
      const { data } = await unwrap(api.POST('/users', { body }));
      onCreated({ name: data.name, password: data.generatedPassword ?? '' });
    },
    said: 'The user is created.',
    refresh: ['admin', 'users'],
  });
  return (
    <FreshSignIn>
      <DialogForm send="Create user" isBusy={isBusy} onSend={run} onClose={onClose}>
        <PersonFields draft={draft} problem={error} onChange={(part) => setDraft({ ...draft, ...part })} />
        {error !== undefined && !isBesideFields(error) && <Problem error={error} />}
      </DialogForm>
    </FreshSignIn>
  );
}
