import { Alert, Button } from '@mantine/core';
import { Link, useNavigate } from '@tanstack/react-router';
import { Moment } from '../../shell/moment.tsx';
import { bytesInWords } from '../../shell/bytes.ts';
import { countOf } from '../../shell/count.ts';
import { CopyField } from '../copy-field.tsx';
import { Qr } from '../qr.tsx';
import { VersionReport, VersionWarnings } from '../report.tsx';
import { addressOf } from '../site-words.ts';
import shared from '../../shell/page.module.css';
import styles from './detail.module.css';
import { ExpiryCard } from './expiry-card.tsx';
import type { Facts } from './facts.ts';
import { OpenButton } from '../../shell/open-button.tsx';
import { carryTo } from '../upload/carried.ts';
import { DropArea } from '../upload/drop-area.tsx';

/** The site's address, live version and expiry. The site opens on its own origin, because no page of Postern may frame it. */
export function Overview(facts: Facts) {
  const { site, actions, now } = facts;
  const address = addressOf(site);
  const isPrivate = site.visibility === 'private';
  return (
    <div className={styles['columns']}>
      <div>
        <Closed site={site} restoreDays={actions.restoreDays} />
        {site.status === 'active' && site.version !== null && actions.reasons.see_versions === null && (
          <VersionWarnings
            siteId={site.id}
            number={site.version.number}
            canFix={actions.reasons.publish === null}
          />
        )}
        <section className={shared['card']}>
          <CopyField label={isPrivate ? 'Link' : 'Address'} value={address} />
          <div className={styles['where']}>
            <div className={shared['stack']}>
              <div className={shared['actions']}>
                {site.status === 'active' && <OpenButton href={address}>Open the site</OpenButton>}
                {actions.reasons.publish === null && (
                  <Button
                    variant="default"
                    renderRoot={(props) => (
                      <Link to="/sites/$id" params={{ id: site.id }} search={{ tab: 'publish' }} {...props} />
                    )}
                  >
                    Publish a new version
                  </Button>
                )}
              </div>
              {site.status === 'active' && (
                <p className={shared['hint']}>
                  {isPrivate
                    ? 'Only you can open it, in a browser where you are signed in.'
                    : 'Everyone who has the address can open it.'}
                </p>
              )}
            </div>
            {/* A private site opens only where its owner is signed in, which a camera is not. */}
            {site.status === 'active' && !isPrivate && <Qr text={address} label={`QR code of ${address}`} />}
          </div>
          <dl className={shared['table']}>
            {/* The other one stands above, to be copied. */}
            <dt>{isPrivate ? 'Current address' : 'Permanent link'}</dt>
            <dd>{isPrivate ? site.url : site.link}</dd>
            <dt>Site id</dt>
            <dd>
              <code>{site.id}</code>
            </dd>
            <dt>Created</dt>
            <dd>
              <Moment at={site.createdAt} now={now} />
            </dd>
            <dt>Live version</dt>
            <dd>
              {site.version === null ? (
                'Nothing is published yet.'
              ) : (
                <>
                  {site.version.number}, published <Moment at={site.version.publishedAt} now={now} />
                  <span className="subline">
                    {countOf(site.fileCount, 'file')}, {bytesInWords(site.sizeBytes)}
                  </span>
                </>
              )}
            </dd>
            <dt>Missing pages</dt>
            <dd>{site.spa ? 'index.html' : '404'}</dd>
          </dl>
        </section>
        {site.version !== null && actions.reasons.see_versions === null && (
          <section className={shared['card']}>
            <h2>Report of version {site.version.number}</h2>
            <VersionReport siteId={site.id} number={site.version.number} />
          </section>
        )}
      </div>
      <div>
        <ExpiryCard {...facts} />
      </div>
      {actions.reasons.publish === null && <DropToPublish siteId={site.id} />}
    </div>
  );
}

/** Why the site is not served, and what to do. */
function Closed({ site, restoreDays }: Pick<Facts, 'site'> & { restoreDays: number }) {
  if (site.status === 'taken_down')
    return (
      <Alert color="red" title="An administrator has taken this site down">
        It is not served.{' '}
        {site.takeDownReason !== null && (
          <>
            Reason: “<bdi>{site.takeDownReason}</bdi>”.{' '}
          </>
        )}
        Nothing is lost. Ask an administrator to reinstate it.
      </Alert>
    );
  if (site.status === 'empty')
    return (
      <Alert color="blue" title="Nothing is published yet">
        Drop a folder on this page. Until then the address answers 404.
      </Alert>
    );
  if (site.status === 'expired')
    return (
      <Alert color="red" title="This site has expired">
        It is no longer served. Extend it to serve it again. After {restoreDays} days it is removed for good.
      </Alert>
    );
  return null;
}

/** Files dropped anywhere on a site's page are published to that site. */
function DropToPublish({ siteId }: { siteId: string }) {
  const navigate = useNavigate();
  return (
    <DropArea
      says="Drop it to publish a new version"
      onPicked={(picked) => {
        carryTo(picked);
        void navigate({ to: '/sites/$id', params: { id: siteId }, search: { tab: 'publish' } });
      }}
    />
  );
}
