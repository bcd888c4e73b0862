import { Button, SegmentedControl, Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { whoAmI } from '../../api/queries.ts';
import { environmentPolicy } from '../../shell/environment-policy.ts';
import { PlusIcon } from '../../shell/icons.tsx';
import { PageHead, Tools } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import { SearchField } from '../../lists/search-field.tsx';
import { useEnvironmentsNow } from '../environments-now.ts';
import { EnvironmentsOff, OffNote } from '../environments-off.tsx';
import { environmentList } from '../queries.ts';
import { RepositorySelect } from '../repository-select.tsx';
import { FirstEnvironment, NoEnvironmentMatches } from './empty.tsx';
import { type EnvironmentSearch, environmentSearch, excludedBy, stateLabels } from './environment-search.ts';
import { EnvironmentTable } from './environment-table.tsx';
import styles from './list.module.css';

const route = getRouteApi('/environments');
const pageSize = 20;

/** The Environments that the user may see. Those under way are refetched until they are done. */
export function EnvironmentsPage() {
  const navigate = route.useNavigate();
  const shown = route.useSearch();
  const { whose, repository, state, search = '', page = 1 } = shown;
  const me = useQuery(whoAmI);
  const policy = useQuery(environmentPolicy);
  const found = useQuery(
    environmentList({
      page,
      limit: pageSize,
      search,
      repository,
      exclude: excludedBy(state),
      mine: whose === 'all' ? undefined : true,
    }),
  );
  const now = useEnvironmentsNow();
  const show = (next: Partial<Record<keyof EnvironmentSearch, unknown>>) =>
    void navigate({ search: environmentSearch({ ...shown, page: undefined, ...next }), replace: true });
  const isNarrowed = whose === 'all' || repository !== undefined || state !== undefined || search !== '';
  const isOff = policy.data?.enabled === false;
  const environments = found.data?.data;
  if (isOff && environments?.length === 0 && !isNarrowed) return <EnvironmentsOff />;

  return (
    <>
      <PageHead
        title="Environments"
        intro="A branch of a repository, built and running at its own URLs until its lease ends."
      >
        {!isOff && (
          <Button
            leftSection={<PlusIcon />}
            renderRoot={(props) => (
              <Link
                to="/environments/new"
                search={repository === undefined ? {} : { repository }}
                {...props}
              />
            )}
          >
            New Environment
          </Button>
        )}
      </PageHead>
      {isOff && <OffNote />}
      <Tools>
        <SearchField
          label="Search by name or branch"
          placeholder="Part of a name or of a branch"
          value={search}
          onChange={(text) => show({ search: text })}
        />
        <SegmentedControl
          aria-label="Whose"
          value={whose ?? 'mine'}
          onChange={(value) => show({ whose: value === 'all' ? 'all' : undefined })}
          data={[
            { value: 'mine', label: 'Mine' },
            { value: 'all', label: 'All' },
          ]}
        />
        <RepositorySelect
          className={styles['filter'] ?? ''}
          aria-label="Repository"
          placeholder="Any repository"
          isClearable
          value={repository}
          onChange={(next) => show({ repository: next })}
        />
        <Select
          className={styles['state'] ?? ''}
          aria-label="State"
          placeholder="Any state"
          clearable
          clearButtonProps={{ 'aria-label': 'Any state' }}
          value={state ?? null}
          onChange={(value) => show({ state: value ?? undefined })}
          data={Object.entries(stateLabels).map(([value, label]) => ({ value, label }))}
        />
      </Tools>
      <List
        what="Environments"
        found={found}
        empty={
          isNarrowed ? (
            <NoEnvironmentMatches
              search={search}
              onClear={() => void navigate({ search: {}, replace: true })}
            />
          ) : (
            <FirstEnvironment />
          )
        }
      >
        {(items) => (
          <EnvironmentTable
            environments={items}
            me={me.data?.principal.id ?? undefined}
            now={now}
            isStale={found.isPlaceholderData}
          />
        )}
      </List>
    </>
  );
}
