import { Button, Modal, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { PlusIcon, TreeIcon } from '../../shell/icons.tsx';
import { useShortcut } from '../../shell/shortcuts.ts';
import { Empty } from '../../lists/empty.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import { Table } from '../../lists/table.tsx';
import { Confirm } from '../../shell/confirm.tsx';
import common from '../admin.module.css';
import { RowButtons, useEditing } from '../editing.tsx';
import { groups } from '../queries.ts';
import { GroupForm } from './group-form.tsx';
import { RoleBadges } from './role-badges.tsx';
import { isManagedExternally, ExternalAccounts } from './external-accounts.tsx';

const route = getRouteApi('/administration/admin/groups');

type Group = Schemas['Group'];

const steps = [
  {
    do: 'Give the roles to a group.',
    why: 'Everyone in the group, or in a group inside it, has these roles.',
  },
  { do: 'Add people to it.', why: 'You do this on the page of each account.' },
];

/** Roles for many people at once. */
export function GroupsPage() {
  const { page = 1 } = route.useSearch();
  const found = useQuery(groups({ page, limit: 50 }));
  const { heading, editing, leaving, edit, leave, close, done } = useEditing<Group>();
  const all = found.data?.data ?? [];
  useShortcut('n', () => {
    if (!isManagedExternally(found.error)) edit('new');
  });
  if (isManagedExternally(found.error))
    return (
      <>
        <PageHead title="Groups" intro="Roles for many people at once." />
        <ExternalAccounts error={found.error} />
      </>
    );
  return (
    <>
      <PageHead
        title="Groups"
        intro="Roles for many people at once. Groups can be inside groups."
        heading={heading}
      >
        <Button leftSection={<PlusIcon />} onClick={() => edit('new')}>
          New group
        </Button>
      </PageHead>
      <List
        what="groups"
        found={found}
        empty={
          <Empty picture={<TreeIcon size={28} />} title="No groups yet" steps={steps}>
            <Button onClick={() => edit('new')}>Create a group</Button>
          </Empty>
        }
      >
        {(all) => (
          <Table
            caption="Groups"
            columns={['Name', 'Parent group', 'Roles', 'Members']}
            hasActions
            isStale={found.isPlaceholderData}
          >
            {all.map((group) => (
              <tr key={group.id}>
                <th scope="row" className={common['name']}>
                  <bdi>{group.name}</bdi>
                </th>
                <td data-label="Parent group" className="wrap">
                  {group.parentId === null ? (
                    <span className="quiet">None</span>
                  ) : (
                    <bdi>{all.find(({ id }) => id === group.parentId)?.name ?? group.parentId}</bdi>
                  )}
                </td>
                <td data-label="Roles">
                  <RoleBadges roles={group.roles} />
                </td>
                <td data-label="Members">{group.memberCount.toLocaleString()}</td>
                <td>
                  <RowButtons
                    name={group.name}
                    end="Delete"
                    onChange={() => edit(group)}
                    onEnd={() => leave(group)}
                  />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </List>
      <Modal
        opened={editing !== undefined}
        title={editing === 'new' ? 'New group' : 'Change this group'}
        onClose={close}
      >
        {editing !== undefined && (
          <GroupForm
            {...(editing === 'new' ? {} : { of: editing })}
            all={all}
            onClose={close}
            onDone={done}
          />
        )}
      </Modal>
      <Modal opened={leaving !== undefined} title="Delete this group?" onClose={close}>
        {leaving !== undefined && (
          <Confirm
            act={() => unwrap(api.DELETE('/groups/{id}', { params: { path: { id: leaving.id } } }))}
            said={`${leaving.name} is deleted.`}
            refresh={['admin', 'groups']}
            confirm="Delete group"
            keep="Keep it"
            onClose={close}
            onDone={done}
          >
            <Text size="sm">
              <b className="wrap">
                <bdi>{leaving.name}</bdi>
              </b>{' '}
              {leaving.memberCount === 0
                ? 'has no members.'
                : `has ${leaving.memberCount} ${leaving.memberCount === 1 ? 'member' : 'members'}. Members immediately lose the roles that they have through it.`}
            </Text>
          </Confirm>
        )}
      </Modal>
    </>
  );
}
