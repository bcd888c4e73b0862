import { Button, Modal } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import type { Schemas } from '../../api/contract.ts';
import { PlusIcon } from '../../shell/icons.tsx';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { useShortcut } from '../../shell/shortcuts.ts';
import { PageHead } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import { Table } from '../../lists/table.tsx';
import common from '../admin.module.css';
import { users } from '../queries.ts';
import { type ListSearch, turnedTo } from '../search.ts';
import { AccountState } from './account-state.tsx';
import { isManagedExternally } from './external-accounts.tsx';
import { KnownPeople } from './known-people.tsx';
import { LastSignIn } from './last-sign-in.tsx';
import { NewUser } from './new-user.tsx';
import { NobodyLike, PeopleSearch } from './people-search.tsx';
import { RoleBadges } from './role-badges.tsx';
import { type NewPassword, ShownOnce } from './shown-once.tsx';
import { TextLink } from '../text-link.tsx';
import { focusIfLost } from '../../shell/focus.ts';

const route = getRouteApi('/administration/admin/users');

/** Everyone who can sign in. */
export function UsersPage() {
  const navigate = route.useNavigate();
  const asked = route.useSearch();
  const { search = '', page = 1 } = asked;
  const found = useQuery(users({ page, limit: 20, ...(search === '' ? {} : { search }) }));
  const [isCreating, setCreating] = useState(false);
  const [shown, setShown] = useState<NewPassword>();
  const heading = useRef<HTMLHeadingElement>(null);
  const now = useNow();
  const ask = (search: ListSearch) => void navigate({ search, replace: true });
  const show = (part: ListSearch) => ask(turnedTo(asked, part));
  useShortcut('n', () => setCreating(!isManagedExternally(found.error)));
  if (isManagedExternally(found.error))
    return <KnownPeople elsewhere={found.error} asked={asked} onAsk={ask} />;
  return (
    <>
      <PageHead title="Users" intro="Everyone who can sign in, and their roles." heading={heading}>
        <Button leftSection={<PlusIcon />} onClick={() => setCreating(true)}>
          New user
        </Button>
      </PageHead>
      <PeopleSearch search={search} onChange={(text) => show({ search: text })} />
      <List
        what="users"
        found={found}
        empty={<NobodyLike search={search} onChange={(text) => show({ search: text })} />}
      >
        {(items) => (
          <Table
            caption="Users"
            columns={['Name', 'Roles', 'State', 'Created', 'Last sign-in']}
            isStale={found.isPlaceholderData}
          >
            {items.map((user) => (
              <Row key={user.id} of={user} now={now} />
            ))}
          </Table>
        )}
      </List>
      <Modal opened={isCreating} title="New user" onClose={() => setCreating(false)}>
        <NewUser
          onClose={() => setCreating(false)}
          onCreated={(password) => {
            setCreating(false);
            setShown(password);
          }}
        />
      </Modal>
      <ShownOnce
        of={shown}
        onStored={() => {
          setShown(undefined);
          focusIfLost(heading.current);
        }}
      />
    </>
  );
}

function Row({ of: user, now }: { of: Schemas['User']; now: number }) {
  return (
    <tr>
      <th scope="row" className={common['name']}>
        <TextLink to="/admin/users/$id" params={{ id: user.id }} inherit>
          <bdi>{user.name}</bdi>
        </TextLink>
        <bdi className={common['more']}>{user.email}</bdi>
      </th>
      <td data-label="Roles">
        <RoleBadges roles={user.effectiveRoles} direct={user.roles} />
      </td>
      <td data-label="State">
        <AccountState of={user.enabled ? 'active' : 'disabled'} />
      </td>
      <td data-label="Created">
        <Moment at={user.createdAt} now={now} />
      </td>
      <td data-label="Last sign-in">
        <LastSignIn at={user.lastLoginAt} now={now} />
      </td>
    </tr>
  );
}
