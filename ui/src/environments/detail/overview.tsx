import { Anchor } from '@mantine/core';
import { Table } from '../../lists/table.tsx';
import { Moment } from '../../shell/moment.tsx';
import { exactly } from '../../shell/time.ts';
import { accessFacts, isEnding, kindWords, type Service } from '../environment-words.ts';
import { LinksCard } from '../links-card.tsx';
import { ServiceBadge } from '../status-badge.tsx';
import shared from '../../shell/page.module.css';
import type { Facts } from './facts.ts';
import styles from './detail.module.css';

/** Its services with their URLs, its facts, and its links. */
export function Overview({ environment, now }: Facts) {
  const { services, links } = environment;
  const over = isEnding(environment);
  return (
    <div className={shared['stack']}>
      {services.length > 0 && !over && (
        <Table caption="Services" columns={['Service', 'Kind', 'Status', 'URL']} isStale={false}>
          {services.map((service) => (
            <ServiceRow key={service.name} of={service} />
          ))}
        </Table>
      )}
      {services.length === 0 && !over && (
        <div className={shared['roomy']}>
          Its services are known as soon as a deploy has read postern.yaml.
        </div>
      )}
      <section className={shared['roomy']} aria-labelledby="facts">
        <h2 id="facts">Facts</h2>
        <dl className={shared['table']}>
          <dt>Repository</dt>
          <dd>{environment.repository}</dd>
          <dt>Branch</dt>
          <dd>
            <bdi>{environment.branch}</bdi>
            {environment.autoTrack &&
              environment.deletedAt === null &&
              ', followed: every new commit is deployed'}
          </dd>
          <dt>Newest commit read</dt>
          <dd>{environment.sha === null ? 'None yet' : <code>{environment.sha}</code>}</dd>
          <dt>Who may open it</dt>
          <dd>{accessFacts[environment.access]}</dd>
          {!over && (
            <>
              <dt>Lease</dt>
              <dd>Ends on {exactly(Date.parse(environment.expiresAt))}. Then it is torn down.</dd>
              <dt>Link</dt>
              <dd>
                {environment.link}
                <span className={shared['small']}>
                  It stays the same when the URLs of the services change.
                </span>
              </dd>
            </>
          )}
          <dt>Id</dt>
          <dd>
            <code>{environment.id}</code>
          </dd>
          <dt>Created</dt>
          <dd>
            <Moment at={environment.createdAt} now={now} />,{' '}
            {environment.trigger === 'push' ? 'by a push' : 'manually or through the API'}
          </dd>
        </dl>
      </section>
      <LinksCard links={links} />
    </div>
  );
}

function ServiceRow({ of: { name, kind, status, url, reason } }: { of: Service }) {
  return (
    <tr>
      <th scope="row" className={styles['service']}>
        {name}
      </th>
      <td data-label="Kind">{kindWords[kind]}</td>
      <td data-label="Status" className="wrap">
        <div>
          <ServiceBadge of={status} />
          {reason !== null && <span className={shared['small']}>{reason}</span>}
        </div>
      </td>
      <td data-label="URL" className="wrap">
        {url === null ? (
          <span className="quiet">No URL</span>
        ) : (
          <Anchor href={url} target="_blank" rel="noreferrer" inherit>
            {url.replace(/^https?:\/\//, '')}
          </Anchor>
        )}
      </td>
    </tr>
  );
}
