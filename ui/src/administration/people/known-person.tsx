import { Box, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { ApiProblem } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import common from '../admin.module.css';
import { accountOf, person } from '../queries.ts';
import { AccountState } from './account-state.tsx';
import { ClientsOf } from './clients-of.tsx';
import { SessionsOf } from './sessions-of.tsx';
import { ManagesAccounts } from './external-accounts.tsx';
import { RoleBadges } from './role-badges.tsx';
import { WhoItIs } from './who-it-is.tsx';

/** A person whose account another provider manages: what Postern knows, and what the provider says now. */
export function KnownPerson({ id, elsewhere }: { id: string; elsewhere: ApiProblem }) {
  const { data, error, refetch } = useQuery(person(id));
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton height={320} radius="lg" role="status" aria-label="Loading" />;
  return (
    <>
      <PageHead title={data.name} intro={<bdi>{data.email ?? 'No e-mail address is known.'}</bdi>} />
      <ManagesAccounts of={elsewhere} />
      <Facts of={data} />
      <SessionsOf id={id} />
      <ClientsOf id={id} keptBy={elsewhere} />
    </>
  );
}

function Facts({ of: known }: { of: Schemas['KnownPerson'] }) {
  const account = useQuery(accountOf(known.id));
  const now = useNow();
  const said = (words: (account: Schemas['KnownPersonAccount']) => ReactNode) => {
    // Also if an earlier answer was known.
    if (account.error !== null) return <span className="quiet">Unknown</span>;
    if (account.data !== undefined) return words(account.data);
    return <Skeleton height={20} width={96} role="status" aria-label="Asking the identity provider" />;
  };
  return (
    <section className={common['card']} aria-label="Person">
      {account.error !== null && (
        <Box mb="md">
          <Problem error={account.error} onRetry={() => void account.refetch()} />
        </Box>
      )}
      <dl className={common['facts']}>
        <dt>State</dt>
        <dd>
          {said(({ state }) => (
            <AccountState of={state} />
          ))}
        </dd>
        <dt>Roles</dt>
        <dd>
          {said(({ roles }) => (
            <RoleBadges roles={roles} />
          ))}
        </dd>
        <dt>Last sign-in</dt>
        <dd>{known.lastLoginAt === null ? 'Never' : <Moment at={known.lastLoginAt} now={now} />}</dd>
        <dt>First seen</dt>
        <dd>
          <Moment at={known.firstSeenAt} now={now} />
        </dd>
        <dt>From</dt>
        <dd>
          <code>{known.issuer}</code>
        </dd>
        <WhoItIs of={known} />
      </dl>
    </section>
  );
}
