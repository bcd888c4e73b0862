import { Button, Switch, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, ApiProblem, unwrap } from '../../api/client.ts';
import { Problem } from '../../shell/problem.tsx';
import shared from '../../shell/page.module.css';
import { useChange } from '../../shell/use-change.ts';
import { DeleteDialog } from './delete-dialog.tsx';
import styles from './detail.module.css';
import type { Facts } from './facts.ts';
import { ReasonedButton } from '../../shell/reasoned-button.tsx';
import { TakeDown } from './take-down.tsx';
import { VisibilityDialog } from './visibility-dialog.tsx';

/** Name, visibility and deletion of the site. A disabled action says why. */
export function Settings({ site, actions, isAdministrator, ...rest }: Facts & { isAdministrator: boolean }) {
  const [isMoving, setMoving] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const isPrivate = site.visibility === 'private';
  const { reasons } = actions;
  return (
    <div className={shared['stack']}>
      <section className={shared['card']}>
        <h2>Name</h2>
        <Rename key={site.name} site={site} actions={actions} {...rest} />
      </section>
      <section className={shared['card']}>
        <Spa site={site} actions={actions} {...rest} />
      </section>
      <section className={shared['card']}>
        <div className={styles['row']}>
          <div>
            <h2>{isPrivate ? 'Private: only you see it' : 'Public: everyone sees it'}</h2>
            <p>
              {isPrivate
                ? 'Only you can open it, in a browser where you are signed in.'
                : 'Anyone who has the address can open it without signing in.'}
            </p>
          </div>
          <ReasonedButton
            variant="default"
            reason={reasons.change_visibility}
            onClick={() => setMoving(true)}
          >
            {isPrivate ? 'Make it public' : 'Make it private'}
          </ReasonedButton>
        </div>
      </section>
      <section className={shared['card']}>
        <div className={styles['row']}>
          <div>
            <h2>Delete</h2>
            <p>
              It stops being served at once. You can restore it for {actions.restoreDays}{' '}
              {actions.restoreDays === 1 ? 'day' : 'days'}; then it is gone for good.
            </p>
          </div>
          <ReasonedButton
            variant="light"
            color="red"
            reason={reasons.delete}
            onClick={() => setDeleting(true)}
          >
            Delete this site
          </ReasonedButton>
        </div>
      </section>
      {isAdministrator && (
        <TakeDown id={site.id} standing={site.status === 'taken_down' ? 'taken_down' : 'served'} />
      )}
      <VisibilityDialog site={site} isOpen={isMoving} onClose={() => setMoving(false)} />
      <DeleteDialog
        site={site}
        restoreDays={actions.restoreDays}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
      />
    </div>
  );
}

function Rename({ site, actions }: Facts) {
  const [name, setName] = useState(site.name);
  const { run, error, isBusy } = useChange({
    act: () =>
      unwrap(api.PATCH('/sites/{id}', { params: { path: { id: site.id } }, body: { name: name.trim() } })),
    said: 'The name is changed.',
    refresh: ['sites'],
  });
  const reason = actions.reasons.change;
  const beside = error instanceof ApiProblem ? error.fields.find(({ field }) => field === 'name') : undefined;
  const isSame = name.trim() === site.name || name.trim() === '';
  return (
    <>
      <form
        className={styles['form']}
        onSubmit={(event) => {
          event.preventDefault();
          if (!isSame) run();
        }}
      >
        <TextInput
          aria-label="Name"
          maxLength={100}
          autoComplete="off"
          disabled={reason !== null}
          value={name}
          error={beside === undefined ? undefined : `It ${beside.problem}.`}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <Button type="submit" variant="default" loading={isBusy} disabled={isSame || reason !== null}>
          Rename
        </Button>
      </form>
      {reason !== null && <p className={shared['reason']}>{reason}</p>}
      {error !== undefined && beside === undefined && <Problem error={error} />}
    </>
  );
}

function Spa({ site, actions }: Facts) {
  const { run, error, isBusy } = useChange({
    act: () =>
      unwrap(api.PATCH('/sites/{id}', { params: { path: { id: site.id } }, body: { spa: !site.spa } })),
    said: site.spa ? 'Missing pages answer 404.' : 'Missing pages show index.html.',
    refresh: ['sites'],
  });
  return (
    <>
      <Switch
        label="An app that routes in the browser"
        description={actions.reasons.change ?? 'Missing pages show index.html instead of a 404.'}
        checked={site.spa}
        disabled={isBusy || actions.reasons.change !== null}
        onChange={run}
      />
      {error !== undefined && <Problem error={error} />}
    </>
  );
}
