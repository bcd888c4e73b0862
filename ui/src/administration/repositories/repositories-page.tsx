import { Button, Modal, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { BranchIcon, PlusIcon } from '../../shell/icons.tsx';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { useShortcut } from '../../shell/shortcuts.ts';
import { Empty, NoMatch } from '../../lists/empty.tsx';
import { PageHead, Tools } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import { SearchField } from '../../lists/search-field.tsx';
import { searchVerb } from '../../lists/search-text.ts';
import { Table } from '../../lists/table.tsx';
import { Confirm } from '../../shell/confirm.tsx';
import common from '../admin.module.css';
import { RowButtons, useEditing } from '../editing.tsx';
import { managedKeys, repositories } from '../queries.ts';
import { type ListSearch, turnedTo } from '../search.ts';
import { TextLink } from '../text-link.tsx';
import { paramsOf, RepositoryForm } from './repository-form.tsx';
import { Wrapped } from '../../lists/wrapped.tsx';

const route = getRouteApi('/administration/admin/repositories');

type Repository = Schemas['Repository'];

const steps = [
  { do: 'Register a repository.', why: 'Then keys can be bound to it.' },
  { do: 'Rename it when it is renamed.', why: 'Keys are bound to the repository, not to its name.' },
];

/** The repositories that keys can be bound to. */
export function RepositoriesPage() {
  const navigate = route.useNavigate();
  const shown = route.useSearch();
  const { search = '', page = 1 } = shown;
  const found = useQuery(repositories({ page, limit: 20, ...(search === '' ? {} : { search }) }));
  const { heading, editing, leaving, edit, leave, close, done } = useEditing<Repository>();
  const now = useNow();
  useShortcut('n', () => edit('new'));
  const show = (part: ListSearch) => void navigate({ search: turnedTo(shown, part), replace: true });
  return (
    <>
      <PageHead
        title="Repositories"
        intro="The git repositories that keys can be bound to."
        heading={heading}
      >
        <Button leftSection={<PlusIcon />} onClick={() => edit('new')}>
          Register a repository
        </Button>
      </PageHead>
      <Tools>
        <SearchField
          label="Search by name"
          placeholder="Start of owner/name, or 3 letters of it"
          value={search}
          onChange={(text) => show({ search: text })}
        />
      </Tools>
      <List
        what="repositories"
        found={found}
        empty={
          search === '' ? (
            <Empty picture={<BranchIcon size={28} />} title="No repositories yet" steps={steps}>
              <Button onClick={() => edit('new')}>Register a repository</Button>
            </Empty>
          ) : (
            <NoMatch clear="Show all repositories" onClear={() => show({ search: '' })}>
              No repository’s name {searchVerb(search)} “<bdi>{search}</bdi>”.
            </NoMatch>
          )
        }
      >
        {(all) => (
          <Table
            caption="Repositories"
            columns={['Name', 'Address', 'Default branch', 'Registered']}
            hasActions
            isStale={found.isPlaceholderData}
          >
            {all.map((one) => (
              <tr key={one.id}>
                <th scope="row" className={common['name']}>
                  <TextLink to="/admin/repositories/$owner/$name" params={paramsOf(one.fullName)} inherit>
                    {one.fullName}
                  </TextLink>
                </th>
                <td data-label="Address" className={common['address']}>
                  <code>
                    <Wrapped text={one.cloneUrl} />
                  </code>
                </td>
                <td data-label="Default branch" className="wrap">
                  {one.defaultBranch}
                </td>
                <td data-label="Registered">
                  <Moment at={one.createdAt} now={now} />
                </td>
                <td>
                  <RowButtons
                    name={one.fullName}
                    end="Remove"
                    onChange={() => edit(one)}
                    onEnd={() => leave(one)}
                  />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </List>
      <Modal
        opened={editing !== undefined}
        title={editing === 'new' ? 'Register a repository' : 'Change this repository'}
        onClose={close}
      >
        {editing !== undefined && (
          <RepositoryForm {...(editing === 'new' ? {} : { of: editing })} onClose={close} onDone={done} />
        )}
      </Modal>
      <Modal opened={leaving !== undefined} title="Remove this repository?" onClose={close}>
        {leaving !== undefined && (
          <Confirm
            act={() =>
              unwrap(
                api.DELETE('/repositories/{owner}/{name}', { params: { path: paramsOf(leaving.fullName) } }),
              )
            }
            said={`${leaving.fullName} is removed.`}
            refresh={['admin', 'repositories']}
            confirm="Remove from the registry"
            keep="Keep it"
            typed={leaving.fullName}
            onClose={close}
            onDone={done}
          >
            <Follows fullName={leaving.fullName} />
          </Confirm>
        )}
      </Modal>
    </>
  );
}

/** Keys lose the repository from their selection. An empty selection reaches no repository. */
function Follows({ fullName }: { fullName: string }) {
  const bound = useQuery(managedKeys({ kind: 'all', status: 'active', repository: fullName, limit: 1 }));
  const broad = useQuery(
    managedKeys({ kind: 'all', status: 'active', repository: fullName, reach: 'all', limit: 1 }),
  );
  const items = (query: typeof bound) => query.data?.metadata.pagination.items;
  const [reaching, all] = [items(bound), items(broad)];
  const selected = reaching === undefined || all === undefined ? undefined : Math.max(0, reaching - all);
  return (
    <Text size="sm" component="div">
      <b className="wrap">{fullName}</b> is removed from the registry. The git repository itself is not
      changed.
      <ul className={common['list']}>
        <li>
          {selected === undefined
            ? 'Keys that have it in their selection lose it.'
            : `${selected === 0 ? 'No key has' : selected === 1 ? 'One key has' : `${selected} keys have`} it in the selection${selected === 0 ? '.' : ' and lose it.'}`}
        </li>
        <li>
          A key whose selection becomes empty reaches no repository. It does not get access to all of them.
        </li>
        <li>If you register it again later, these keys do not get it back.</li>
      </ul>
    </Text>
  );
}
