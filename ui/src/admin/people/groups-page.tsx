import { Button, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { call } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { PlusIcon, TreeIcon } from '../../app/icons.tsx';
import { Problem } from '../../app/problem.tsx';
import { Empty } from '../../lists/empty.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import { Pages } from '../../lists/pages.tsx';
import { Table, TableLoading } from '../../lists/table.tsx';
import { Confirm, Dialog } from '../act.tsx';
import common from '../admin.module.css';
import { groups } from '../queries.ts';
import { GroupForm } from './group-form.tsx';
import { RoleBadges } from './role-badges.tsx';
import { isKeptElsewhere, KeptElsewhere } from './kept-elsewhere.tsx';

const route = getRouteApi('/administration/admin/groups');

type Group = Schemas['Group'];

const steps = [
  { do: 'Give the roles to a group.', why: 'Everybody in it has them, and in the groups inside it.' },
  { do: 'Put people into it.', why: 'On the page of each account.' },
];

/** Roles for many people at once. */
export function GroupsPage() {
  const navigate = route.useNavigate();
  const { page = 1 } = route.useSearch();
  const found = useQuery(groups({ page, limit: 50 }));
  const [editing, setEditing] = useState<Group | 'new'>();
  const [leaving, setLeaving] = useState<Group>();
  const heading = useRef<HTMLHeadingElement>(null);
  const all = found.data?.data ?? [];
  const done = () => {
    setEditing(undefined);
    setLeaving(undefined);
    heading.current?.focus();
  };
  if (isKeptElsewhere(found.error))
    return (
      <>
        <PageHead title="Groups" intro="Roles for many people at once." />
        <KeptElsewhere error={found.error} />
      </>
    );
  return (
    <>
      <PageHead
        title="Groups"
        intro="Roles for many people at once. Groups can be inside groups."
        heading={heading}
      >
        <Button leftSection={<PlusIcon />} onClick={() => setEditing('new')}>
          New group
        </Button>
      </PageHead>
      {found.isPending && <TableLoading what="groups" />}
      {found.error !== null && <Problem error={found.error} onRetry={() => void found.refetch()} />}
      {found.data !== undefined && all.length === 0 && (
        <Empty picture={<TreeIcon size={28} />} title="No groups yet" steps={steps}>
          <Button onClick={() => setEditing('new')}>Create a group</Button>
        </Empty>
      )}
      {all.length > 0 && (
        <Table
          caption="Groups"
          columns={['Name', 'Inside', 'Roles', 'People']}
          hasActions
          isStale={found.isPlaceholderData}
        >
          {all.map((group) => (
            <tr key={group.id}>
              <th scope="row" className={common['name']}>
                <bdi>{group.name}</bdi>
              </th>
              <td data-label="Inside" className={common['wrap']}>
                {group.parentId === null ? (
                  <span className="quiet">Nothing</span>
                ) : (
                  <bdi>{all.find(({ id }) => id === group.parentId)?.name ?? group.parentId}</bdi>
                )}
              </td>
              <td data-label="Roles">
                <RoleBadges roles={group.roles} />
              </td>
              <td data-label="People">{group.memberCount.toLocaleString()}</td>
              <td>
                <span className={common['buttons']}>
                  <Button
                    variant="default"
                    size="xs"
                    aria-label={`Change ${group.name}`}
                    onClick={() => setEditing(group)}
                  >
                    Change
                  </Button>
                  <Button
                    variant="default"
                    size="xs"
                    aria-label={`Delete ${group.name}`}
                    onClick={() => setLeaving(group)}
                  >
                    Delete
                  </Button>
                </span>
              </td>
            </tr>
          ))}
        </Table>
      )}
      <Pages
        page={page}
        total={found.data?.metadata.pagination.total ?? 0}
        onChange={(next) => void navigate({ search: next > 1 ? { page: next } : {}, replace: true })}
      />
      <Dialog
        isOpen={editing !== undefined}
        title={editing === 'new' ? 'New group' : 'Change this group'}
        onClose={() => setEditing(undefined)}
      >
        {editing !== undefined && (
          <GroupForm
            {...(editing === 'new' ? {} : { of: editing })}
            all={all}
            onClose={() => setEditing(undefined)}
            onDone={done}
          />
        )}
      </Dialog>
      <Dialog isOpen={leaving !== undefined} title="Delete this group?" onClose={() => setLeaving(undefined)}>
        {leaving !== undefined && (
          <Confirm
            act={() => call('DELETE /groups/{id}', { params: { id: leaving.id } })}
            said={`${leaving.name} is deleted.`}
            refresh="groups"
            confirm="Delete group"
            keep="Keep it"
            onClose={() => setLeaving(undefined)}
            onDone={done}
          >
            <Text size="sm">
              <b className={common['wrap']}>
                <bdi>{leaving.name}</bdi>
              </b>{' '}
              {leaving.memberCount === 0
                ? 'has nobody in it.'
                : `has ${leaving.memberCount} in it, who lose the roles they have through it at once.`}
            </Text>
          </Confirm>
        )}
      </Dialog>
    </>
  );
}
