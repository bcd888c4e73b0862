import { Link } from '@tanstack/react-router';
import { Moment } from '../../shell/moment.tsx';
import { Table } from '../../lists/table.tsx';
import { bytesInWords } from '../../shell/bytes.ts';
import { countOf } from '../../shell/count.ts';
import { StandingBadge } from '../standing-badge.tsx';
import { ownerWords, type Site, withoutScheme } from '../site-words.ts';
import { VisibilityWord } from '../visibility-word.tsx';
import { type SiteOrder, siteOrders, type SiteSort } from './site-order.ts';
import styles from './sites-page.module.css';

type TableProps = {
  readonly sites: readonly Site[];
  /** True if the list has other people's sites, so that each row names the owner. */
  readonly isOfAll: boolean;
  readonly order: SiteOrder;
  readonly onSort: (sort: SiteSort) => void;
  /** Id of the signed-in user. */
  readonly me: string | undefined;
  readonly now: number;
  readonly isStale: boolean;
};

export function SiteTable({ sites, isOfAll, order, onSort, me, now, isStale }: TableProps) {
  const sorted = (name: string, sort: SiteSort) => ({
    name,
    order: siteOrders.directionIn(order, sort),
    onSort: () => onSort(sort),
  });
  const columns = [
    sorted('Name', 'name'),
    'Visibility',
    ...(isOfAll ? ['Owner'] : []),
    sorted('Size', 'size'),
    sorted('Published', 'published'),
    sorted('State and expiry', 'expires'),
  ];
  return (
    <Table caption="Sites" columns={columns} isStale={isStale}>
      {sites.map((site) => (
        <tr key={site.id}>
          <th scope="row" className={styles['name']}>
            <Link to="/sites/$id" params={{ id: site.id }}>
              <bdi>{site.name}</bdi>
            </Link>
            <Address of={site} />
          </th>
          <td data-label="Visibility">
            <VisibilityWord of={site.visibility} />
          </td>
          {isOfAll && (
            <td data-label="Owner" className={styles['who']}>
              <bdi>{ownerWords(site, me)}</bdi>
            </td>
          )}
          <td data-label="Size" className={styles['nowrap']}>
            {site.version === null ? (
              <span className="quiet">–</span>
            ) : (
              <>
                {bytesInWords(site.sizeBytes)}
                <span className={styles['end']}>{countOf(site.fileCount, 'file')}</span>
              </>
            )}
          </td>
          <td data-label="Published">
            {site.version === null ? (
              <span className="quiet">Never</span>
            ) : (
              <Moment at={site.version.publishedAt} now={now} />
            )}
          </td>
          <td data-label="State">
            <StandingBadge of={site} now={now} />
            <span className={styles['end']}>
              <End of={site} now={now} />
            </span>
          </td>
        </tr>
      ))}
    </Table>
  );
}

function End({ of: { status, restorableUntil, expiresAt }, now }: { of: Site; now: number }) {
  if (status === 'deleted')
    return restorableUntil === null ? null : (
      <>
        Gone for good <Moment at={restorableUntil} now={now} isAhead />
      </>
    );
  if (expiresAt === null) return 'Does not expire';
  return (
    <>
      {Date.parse(expiresAt) <= now ? 'Expired' : 'Expires'} <Moment at={expiresAt} now={now} isAhead />
    </>
  );
}

/** Breaks a long address after its first part. */
function Address({ of: { url } }: { of: Site }) {
  const [first = '', ...rest] = withoutScheme(url).split('.');
  return (
    <span className={styles['address']}>
      <span className={styles['nowrap']}>{first}</span>
      {rest.length > 0 && (
        <>
          <wbr />.{rest.join('.')}
        </>
      )}
    </span>
  );
}
