import { Button, Group } from '@mantine/core';
import { useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Problem } from '../../shell/problem.tsx';
import { useChange } from '../../shell/use-change.ts';
import common from '../admin.module.css';
import { isBesideFields, type PersonDraft, PersonFields } from './person-fields.tsx';
import { FreshSignIn } from '../../shell/fresh-sign-in.tsx';

/** Only what was changed is sent, so that two administrators do not undo each other. */
export function EditUser({ of: user }: { of: Schemas['User'] }) {
  const known: PersonDraft = user;
  const [draft, setDraft] = useState<PersonDraft>(known);
  const body = changesOf(known, draft);
  const { run, error, isBusy } = useChange({
    act: () => unwrap(api.PATCH('/users/{id}', { params: { path: { id: user.id } }, body })),
    said: 'Saved.',
    refresh: ['admin', 'users'],
  });
  return (
    <section className={common['card']} aria-labelledby="who">
      <div className={common['head']}>
        <h2 id="who">Who they are</h2>
      </div>
      <FreshSignIn>
        <form
          noValidate
          className={common['stack']}
          onSubmit={(event) => {
            event.preventDefault();
            run();
          }}
        >
          <PersonFields draft={draft} problem={error} onChange={(part) => setDraft({ ...draft, ...part })} />
          {error !== undefined && !isBesideFields(error) && <Problem error={error} />}
          <Group justify="flex-end" gap="sm">
            <Button type="submit" loading={isBusy} disabled={Object.keys(body).length === 0}>
              Save
            </Button>
          </Group>
        </form>
      </FreshSignIn>
    </section>
  );
}

function changesOf(before: PersonDraft, after: PersonDraft): Schemas['UserChange'] {
  const same = (one: readonly string[], other: readonly string[]) =>
    [...one].sort().join() === [...other].sort().join();
  return {
    ...(after.name.trim() === before.name ? {} : { name: after.name }),
    ...(after.email.trim() === before.email ? {} : { email: after.email }),
    ...(same(before.roles, after.roles) ? {} : { roles: [...after.roles] }),
    ...(same(before.groups, after.groups) ? {} : { groups: [...after.groups] }),
  };
}
