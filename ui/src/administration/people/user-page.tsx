import { Button, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import type { Schemas } from '../../api/contract.ts';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import common from '../admin.module.css';
import { oneUser } from '../queries.ts';
import { AccountState } from './account-state.tsx';
import { ClientsOf } from './clients-of.tsx';
import { EditUser } from './edit-user.tsx';
import { isManagedExternally } from './external-accounts.tsx';
import { KnownPerson } from './known-person.tsx';
import { SessionsOf } from './sessions-of.tsx';
import { RoleBadges } from './role-badges.tsx';
import { type NewPassword, ShownOnce } from './shown-once.tsx';
import { type Step, UserStep } from './user-steps.tsx';
import { TextLink } from '../text-link.tsx';
import { WhoItIs } from './who-it-is.tsx';
import { focusIfLost } from '../../shell/focus.ts';

const route = getRouteApi('/administration/admin/users/$id');

/** One account: its facts, its clients, and its actions. */
export function UserPage() {
  const { id } = route.useParams();
  const { data: user, error, refetch } = useQuery(oneUser(id));
  return (
    <>
      <TextLink to="/admin/users" size="sm">
        ← Users
      </TextLink>
      {isManagedExternally(error) && <KnownPerson id={id} elsewhere={error} />}
      {error !== null && !isManagedExternally(error) && (
        <Problem error={error} onRetry={() => void refetch()} />
      )}
      {user === undefined && error === null && (
        <Skeleton height={320} radius="lg" role="status" aria-label="Loading" />
      )}
      {user !== undefined && <Account of={user} />}
    </>
  );
}

function Account({ of: user }: { of: Schemas['User'] }) {
  const [step, setStep] = useState<Step>();
  const [shown, setShown] = useState<NewPassword>();
  const heading = useRef<HTMLHeadingElement>(null);
  const now = useNow();
  const toHeading = () => focusIfLost(heading.current);
  return (
    <>
      <PageHead title={user.name} intro={<bdi>{user.email}</bdi>} heading={heading} />
      <section className={common['card']} aria-label="Account">
        <dl className={common['facts']}>
          <dt>State</dt>
          <dd>
            <AccountState of={user.enabled ? 'active' : 'disabled'} />
          </dd>
          <dt>Roles</dt>
          <dd>
            <RoleBadges roles={user.effectiveRoles} direct={user.roles} />
          </dd>
          <dt>Last sign-in</dt>
          <dd>{user.lastLoginAt === null ? 'Never' : <Moment at={user.lastLoginAt} now={now} />}</dd>
          <dt>Created</dt>
          <dd>
            <Moment at={user.createdAt} now={now} />
          </dd>
          <WhoItIs of={user} />
        </dl>
      </section>
      <EditUser key={user.updatedAt} of={user} />
      <SessionsOf id={user.id} />
      <ClientsOf id={user.id} />
      <section className={common['card']} aria-labelledby="steps">
        <div className={common['head']}>
          <h2 id="steps">Actions</h2>
        </div>
        <div className={common['buttons']}>
          {user.enabled ? (
            <Button variant="default" onClick={() => setStep('disable')}>
              Disable
            </Button>
          ) : (
            <Button onClick={() => setStep('enable')}>Enable</Button>
          )}
          <Button variant="default" onClick={() => setStep('sign-out')}>
            Sign out everywhere
          </Button>
          <Button variant="default" onClick={() => setStep('reset')}>
            Reset password
          </Button>
          <Button variant="default" onClick={() => setStep('reset-passkeys')}>
            Reset passkeys
          </Button>
          <Button color="red" variant="light" onClick={() => setStep('delete')}>
            Delete account
          </Button>
        </div>
      </section>
      <UserStep
        step={step}
        of={user}
        onClose={() => setStep(undefined)}
        onDone={() => {
          if (step !== 'reset') toHeading();
        }}
        onPassword={(password) => setShown({ name: user.name, password })}
      />
      <ShownOnce
        of={shown}
        onStored={() => {
          setShown(undefined);
          toHeading();
        }}
      />
    </>
  );
}
