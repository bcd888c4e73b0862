import { Button, NativeSelect, Progress, SegmentedControl, Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { whoAmI } from '../../api/queries.ts';
import { PlusIcon } from '../../shell/icons.tsx';
import { PageHead, Tools } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import { SearchField } from '../../lists/search-field.tsx';
import { capabilities, sitesList } from '../queries.ts';
import { closedBy, SitesClosed } from '../sites-off.tsx';
import { FirstSite, NoSiteMatches } from './empty.tsx';
import { siteOrders, type SiteSort } from './site-order.ts';
import { type SiteSearch, siteSearch, siteStates } from './site-search.ts';
import { SiteTable } from './site-table.tsx';
import styles from './sites-page.module.css';
import { useSitesNow } from '../sites-now.ts';
import type { Schemas } from '../../api/contract.ts';
import { bytesInWords } from '../../shell/bytes.ts';
import { useCarry } from '../upload/carried.ts';
import { DropArea } from '../upload/drop-area.tsx';

const route = getRouteApi('/sites');
const pageSize = 20;
const stateLabels = {
  active: 'Live',
  empty: 'No version yet',
  expired: 'Expired',
  taken_down: 'Taken down',
  deleted: 'Deleted',
} as const;

/** The sites that the user may see: the user's own and public ones. A folder can be dropped anywhere on the page. */
export function SitesPage() {
  const navigate = route.useNavigate();
  const shown = route.useSearch();
  const { whose, state, visibility, search = '', page = 1 } = shown;
  const me = useQuery(whoAmI);
  const mine = useQuery(capabilities);
  const sites = useQuery(
    sitesList({
      page,
      limit: pageSize,
      search,
      visibility,
      status: state,
      mine: whose === 'all' ? undefined : true,
      ...siteOrders.asked(shown),
    }),
  );
  const now = useSitesNow();
  const show = (next: Partial<Record<keyof SiteSearch, unknown>>) =>
    void navigate({ search: siteSearch({ ...shown, page: undefined, ...next }), replace: true });
  const sortBy = (sort: SiteSort) => show(siteOrders.next(shown, sort));
  const isNarrowed = whose === 'all' || state !== undefined || visibility !== undefined || search !== '';
  const closed = closedBy(sites.error);
  if (closed !== null) return <SitesClosed title="Sites" why={closed} />;

  return (
    <>
      <PageHead title="Sites" intro="Static websites at their own addresses, for everyone or only for you.">
        {mine.data !== undefined && <Quota {...mine.data.quotas} />}
        <Button component={Link} to="/sites/new" leftSection={<PlusIcon />}>
          New site
        </Button>
      </PageHead>
      <Tools>
        <SearchField
          label="Search by name, id or address"
          placeholder="Search by name or id"
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
        <Select
          className={styles['filter']}
          aria-label="State"
          placeholder="Any state"
          clearable
          clearButtonProps={{ 'aria-label': 'Any state' }}
          value={state ?? null}
          onChange={(value) => show({ state: siteStates.find((one) => one === value) })}
          data={siteStates.map((value) => ({ value, label: stateLabels[value] }))}
        />
        <Select
          className={styles['filter']}
          aria-label="Visibility"
          placeholder="Any visibility"
          clearable
          clearButtonProps={{ 'aria-label': 'Any visibility' }}
          value={visibility ?? null}
          onChange={(value) =>
            show({ visibility: value === 'public' || value === 'private' ? value : undefined })
          }
          data={[
            { value: 'public', label: 'Public' },
            { value: 'private', label: 'Private' },
          ]}
        />
        <NativeSelect
          className={`${styles['filter']} ${styles['order']}`}
          aria-label="Order"
          value={shown.sort ?? 'created'}
          data={siteOrders.sorts.map((value) => ({ value, label: siteOrders.inWords(shown, value) }))}
          onChange={({ currentTarget: { value } }) => show({ sort: value, order: undefined })}
        />
      </Tools>
      <List
        what="sites"
        found={sites}
        empty={
          isNarrowed ? (
            <NoSiteMatches search={search} onClear={() => void navigate({ search: {}, replace: true })} />
          ) : (
            <FirstSite />
          )
        }
      >
        {(items) => (
          <SiteTable
            sites={items}
            isOfAll={whose === 'all'}
            order={shown}
            onSort={sortBy}
            me={me.data?.principal.id ?? undefined}
            now={now}
            isStale={sites.isPlaceholderData}
          />
        )}
      </List>
      {sites.error === null && <DropToNew />}
    </>
  );
}

/** How much of the user's quota is in use. */
function Quota({
  sitesUsed,
  sitesPerOwner,
  bytesUsed,
  bytesPerOwner,
}: Schemas['SiteCapabilities']['quotas']) {
  const share = Math.min(100, (bytesUsed / bytesPerOwner) * 100);
  return (
    <div className={styles['quota']}>
      <p>
        <b>{sitesUsed}</b> of {sitesPerOwner} sites · <b>{bytesInWords(bytesUsed)}</b> of{' '}
        {bytesInWords(bytesPerOwner)}
      </p>
      <Progress.Root size="sm" aria-hidden="true">
        <Progress.Section value={share} color={share > 90 ? 'red' : 'blue'} withAria={false} />
      </Progress.Root>
    </div>
  );
}

/** Lets a page without a form accept dropped files, and passes them to the form of a new site. */
function DropToNew() {
  return <DropArea says="Drop it to make a new site" onPicked={useCarry()} />;
}
