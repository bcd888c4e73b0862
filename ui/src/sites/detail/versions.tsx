import { Alert, Badge, Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Moment } from '../../shell/moment.tsx';
import { Problem } from '../../shell/problem.tsx';
import { NoMatch } from '../../lists/empty.tsx';
import { AddressPages } from '../../lists/pages.tsx';
import { Table, TableLoading } from '../../lists/table.tsx';
import { bytesInWords } from '../../shell/bytes.ts';
import { countOf } from '../../shell/count.ts';
import { siteVersions } from '../queries.ts';
import shared from '../../shell/page.module.css';
import styles from './detail.module.css';
import type { Facts, Show } from './facts.ts';
import { GoLiveDialog } from './go-live-dialog.tsx';
import { Preview } from './preview.tsx';
import { VersionDialog } from './version-dialog.tsx';

const pageSize = 10;

type VersionsProps = Facts & {
  readonly page: number;
  /** The selected version. */
  readonly version: number | undefined;
  readonly show: Show;
};

/** The versions, newest first, with buttons to inspect, compare and restore them. */
export function Versions({ site, actions, now, page, version, show }: VersionsProps) {
  const mayLook = actions.reasons.see_versions === null;
  const versions = useQuery({ ...siteVersions(site.id, page, pageSize), enabled: mayLook });
  const [going, setGoing] = useState<number>();
  if (!mayLook)
    return (
      <Alert color="yellow" title="Only its owner can see its versions">
        {actions.reasons.see_versions}
      </Alert>
    );
  if (versions.error !== null)
    return <Problem error={versions.error} onRetry={() => void versions.refetch()} />;
  if (versions.data === undefined) return <TableLoading what="versions" />;
  if (versions.data.data.length === 0)
    return (
      <NoMatch>Nothing is published yet. Each publish creates a version that you can roll back to.</NoMatch>
    );
  const live = site.version?.number;
  return (
    <div className={shared['stack']}>
      <Table
        caption="Versions"
        columns={['Version', 'Published', 'Size']}
        hasActions
        isStale={versions.isPlaceholderData}
      >
        {versions.data.data.map((one) => (
          <tr key={one.number}>
            <th scope="row">
              {one.number} {one.isLive && <Badge color="green">Live</Badge>}
            </th>
            <td data-label="Published">
              <Moment at={one.publishedAt} now={now} />
            </td>
            <td data-label="Size">
              {bytesInWords(one.sizeBytes)}, {countOf(one.fileCount, 'file')}
            </td>
            <td>
              <div className={`${shared['actions']} ${styles['doing']}`}>
                <Button
                  size="xs"
                  variant="default"
                  aria-label={`What changed in version ${one.number}`}
                  onClick={() => show({ page, version: one.number })}
                >
                  What changed
                </Button>
                <Preview siteId={site.id} number={one.number} reason={actions.reasons.publish} />
                {!one.isLive && (
                  <Button
                    size="xs"
                    variant="default"
                    disabled={actions.reasons.publish !== null}
                    aria-label={`${backOrForward(one.number, live)} to version ${one.number}`}
                    onClick={() => setGoing(one.number)}
                  >
                    {backOrForward(one.number, live)}
                  </Button>
                )}
              </div>
            </td>
          </tr>
        ))}
      </Table>
      {actions.reasons.publish !== null && <p className="subline">{actions.reasons.publish}</p>}
      <p className="subline">
        Versions never change. A preview has its own address for 24 hours and follows the site’s access rules.
      </p>
      <AddressPages total={versions.data.metadata.pagination.total} />
      <VersionDialog site={site} number={version} onClose={() => show({ page })} />
      <GoLiveDialog site={site} number={going} onClose={() => setGoing(undefined)} />
    </div>
  );
}

function backOrForward(number: number, live: number | undefined): string {
  return live !== undefined && number < live ? 'Roll back' : 'Roll forward';
}
