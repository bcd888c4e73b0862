import { Alert, Badge, Button, Modal, Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Confirm } from '../../shell/confirm.tsx';
import { CheckIcon, CrossIcon } from '../../shell/icons.tsx';
import { Moment } from '../../shell/moment.tsx';
import { Problem } from '../../shell/problem.tsx';
import { AddressPages } from '../../lists/pages.tsx';
import { Table } from '../../lists/table.tsx';
import { siteAccess } from '../queries.ts';
import shared from '../../shell/page.module.css';
import type { Site } from '../site-words.ts';
import { browserWords } from '../../shell/browser-words.ts';
import styles from './detail.module.css';
import type { Facts } from './facts.ts';
import { ReasonedButton } from '../../shell/reasoned-button.tsx';

const pageSize = 20;

/** Explains check by check whether the site opens, and lists the browsers with grants. */
export function Access({ site, actions, now, page }: Facts & { page: number }) {
  const mayLook = actions.reasons.see_versions === null;
  const access = useQuery({ ...siteAccess(site.id, page, pageSize), enabled: mayLook });
  const [isEnding, setEnding] = useState(false);
  if (!mayLook)
    return (
      <Alert color="yellow" title="Only its owner can see its grants">
        {actions.reasons.see_versions} Anyone who has its address can open it.
      </Alert>
    );
  if (access.error !== null) return <Problem error={access.error} onRetry={() => void access.refetch()} />;
  if (access.data === undefined)
    return <Skeleton height={240} radius="lg" role="status" aria-label="Loading" />;
  const { opens, checks, grants } = access.data.data;
  const isPrivate = site.visibility === 'private';
  return (
    <div className={shared['stack']}>
      <section className={shared['card']}>
        <div className={styles['row']}>
          <div>
            <h2>{titleOf(opens, checks)}</h2>
            <p>
              {isPrivate
                ? 'It is private: only you, its owner, can open it.'
                : 'It is public: everyone who has the address can open it.'}{' '}
              Postern makes each of these checks at every visit.
            </p>
          </div>
          <Button
            variant="default"
            renderRoot={(props) => (
              <Link to="/sites/$id" params={{ id: site.id }} search={{ tab: 'settings' }} {...props} />
            )}
          >
            Change who sees it
          </Button>
        </div>
        <ul className={styles['checks']}>
          {checks.map(({ check, passed, detail }) => (
            <li key={check} data-passed={passed}>
              {passed ? <CheckIcon size={16} /> : <CrossIcon size={16} />}
              <span>
                <span className="unseen">{passed ? 'Passed: ' : 'Failed: '}</span>
                {detail}
              </span>
            </li>
          ))}
        </ul>
      </section>
      <section className={shared['stack']}>
        <div className={styles['row']}>
          <div>
            <h2 className={styles['title']}>Browser grants</h2>
            <p>
              Browsers that got a grant within the last 30 days. A grant lasts five minutes at most; then the
              browser is checked again. Signing out does not end a grant.
            </p>
          </div>
          <ReasonedButton
            variant="default"
            color="red"
            reason={actions.reasons.end_grants}
            onClick={() => setEnding(true)}
          >
            End all grants
          </ReasonedButton>
        </div>
        {grants.length === 0 ? (
          <div className={shared['card']}>No browser was given access in the last 30 days.</div>
        ) : (
          <Table
            caption="Grants"
            columns={['Browser', 'Address', 'Granted', 'Ends', 'State']}
            isStale={access.isPlaceholderData}
          >
            {grants.map((grant) => (
              <Grant key={grant.id} of={grant} now={now} />
            ))}
          </Table>
        )}
        <AddressPages total={access.data.metadata.pagination.total} />
      </section>
      <EndGrantsDialog site={site} isOpen={isEnding} onClose={() => setEnding(false)} />
    </div>
  );
}

function titleOf(opens: boolean, checks: Schemas['SiteAccess']['checks']): string {
  const failed = checks.filter(({ passed }) => !passed).length;
  if (opens) return 'It opens';
  return failed === 1 ? 'It does not open: one check fails' : `It does not open: ${failed} checks fail`;
}

function Grant({ of: grant, now }: { of: Schemas['SiteAccess']['grants'][number]; now: number }) {
  const isLive = grant.status === 'live';
  return (
    <tr>
      <th scope="row" className="wrap">
        <bdi title={grant.agent ?? ''}>{grant.agent === null ? 'A browser' : browserWords(grant.agent)}</bdi>
      </th>
      <td data-label="Address">{grant.address ?? '–'}</td>
      <td data-label="Granted">
        <Moment at={grant.issuedAt} now={now} />
      </td>
      <td data-label="Ends">
        <Moment at={grant.endsAt} now={now} isAhead />
      </td>
      <td data-label="State">
        <Badge color={isLive ? 'green' : 'gray'}>{isLive ? 'Live' : 'Ended'}</Badge>
      </td>
    </tr>
  );
}

type DialogProps = { readonly site: Site; readonly isOpen: boolean; readonly onClose: () => void };

function EndGrantsDialog({ site, isOpen, onClose }: DialogProps) {
  return (
    <Modal opened={isOpen} onClose={onClose} title="End all grants?">
      <Confirm
        act={() => unwrap(api.DELETE('/sites/{id}/grants', { params: { path: { id: site.id } } }))}
        said="All grants are ended."
        refresh={['sites']}
        confirm="End all grants"
        keep="Keep them"
        onClose={onClose}
      >
        <Text size="sm">
          Every browser that reads <bdi>{site.name}</bdi> now, including yours, loses access at its next
          request, everywhere. Anyone who opens the link again is checked again. Copies that people saved
          remain with them.
        </Text>
      </Confirm>
    </Modal>
  );
}
