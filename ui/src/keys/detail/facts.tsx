import { Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { Moment } from '../../shell/moment.tsx';
import { exactly } from '../../shell/time.ts';
import { endOf, type Key } from '../key-words.ts';
import { accessFrom, touchesOnlySites } from '../new/access.ts';
import { rightsInWords } from '../rights.ts';
import { Scopes } from '../standing.tsx';
import styles from './key-page.module.css';

type FactsProps = {
  readonly of: Key;
  readonly now: number;
  readonly reader?: Parameters<typeof endOf>[1];
  /** More facts, shown before what the key may do. */
  readonly children?: ReactNode;
};

export function Facts({ of: key, now, reader = 'owner', children }: FactsProps) {
  const end = endOf(key, reader);
  return (
    <section className={styles['card']} aria-labelledby="facts">
      <div className={styles['bar']}>
        <Title order={2} size="h4" id="facts">
          Facts
        </Title>
      </div>
      <dl className={styles['facts']}>
        {children}
        <Fact name="May do">
          <Scopes of={key.scopes} />
          <span className={styles['from']}>It may {rightsInWords(key.scopes)}.</span>
        </Fact>
        <Fact name="Repositories">
          <Repositories of={key} />
        </Fact>
        <Fact name="Created">
          <When at={key.createdAt} now={now} />
        </Fact>
        <Fact name="Last used">
          {key.lastUsedAt === null ? 'Never' : <When at={key.lastUsedAt} now={now} />}
          {key.lastUsedFrom !== null && <From {...key.lastUsedFrom} />}
        </Fact>
        <Fact name={end.at === null ? 'Expires' : end.word}>
          {end.at === null ? 'Never, unless someone revokes it' : <When at={end.at} now={now} isAhead />}
        </Fact>
        {key.suspended && (
          <Fact name="Suspended">
            Refused while the account it belongs to is disabled or lacks the role user.
          </Fact>
        )}
      </dl>
    </section>
  );
}

export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function From({ network, program }: NonNullable<Key['lastUsedFrom']>) {
  return (
    <span className={styles['from']}>
      from {network === null ? 'an unknown network' : <code>{network}</code>}
      {program !== null && (
        <>
          {' '}
          by <bdi>{program}</bdi>
        </>
      )}
    </span>
  );
}

function When({ at, now, isAhead = false }: { at: string; now: number; isAhead?: boolean }) {
  return (
    <>
      {exactly(Date.parse(at))} <span className="quiet">(</span>
      <Moment at={at} now={now} isAhead={isAhead} />
      <span className="quiet">)</span>
    </>
  );
}

function Repositories({ of: { scopes, repositories: reach } }: { of: Key }) {
  if (touchesOnlySites(accessFrom(scopes, scopes))) return 'Not needed: sites belong to no repository';
  if (reach.mode === 'all') return 'All, including those registered later';
  if (reach.repositories.length === 0) return 'None left: its repositories were removed';
  return reach.repositories.map((name) => (
    <span key={name}>
      {name}
      <br />
    </span>
  ));
}
