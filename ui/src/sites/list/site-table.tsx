import { Link } from '@tanstack/react-router';
import { Moment } from '../../app/moment.tsx';
import { Table } from '../../lists/table.tsx';
import { bytesInWords, countOf } from '../bytes.ts';
import { StandingBadge } from '../standing-badge.tsx';
import { ownerWords, type Site, withoutScheme } from '../site-words.ts';
import { VisibilityWord } from '../visibility-word.tsx';
import styles from './sites-page.module.css';

type TableProps = {
  readonly sites: readonly Site[];
  /** The reader's own id. */
  readonly me: string | undefined;
  readonly now: number;
  readonly isStale: boolean;
};

export function SiteTable({ sites, me, now, isStale }: TableProps) {
  return (
    <Table
      caption="Sites"
      columns={['Name', 'Visibility', 'Owner', 'Size', 'Published', 'State']}
      isStale={isStale}
    >
      {sites.map((site) => (
        <tr key={site.id}>
          <th scope="row" className={styles['name']}>
            <Link to="/sites/$id" params={{ id: site.id }}>
              <bdi>{site.name}</bdi>
            </Link>
            <span className={styles['address']}>{withoutScheme(site.url)}</span>
          </th>
          <td data-label="Visibility">
            <VisibilityWord of={site.visibility} />
          </td>
          <td data-label="Owner" className={styles['who']}>
            <bdi>{ownerWords(site, me)}</bdi>
          </td>
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
        Gone for good <Moment at={restorableUntil} now={now} />
      </>
    );
  if (expiresAt === null) return 'Does not expire';
  return (
    <>
      {Date.parse(expiresAt) <= now ? 'Expired' : 'Expires'} <Moment at={expiresAt} now={now} />
    </>
  );
}
