import { Link } from '@tanstack/react-router';
import { Table } from '../../lists/table.tsx';
import { creatorWords, type Environment, isEnding, shortSha } from '../environment-words.ts';
import { Lease } from '../lease.tsx';
import { EnvironmentBadge } from '../status-badge.tsx';
import shared from '../../shell/page.module.css';
import styles from './list.module.css';

type TableProps = {
  readonly environments: readonly Environment[];
  /** Id of the signed-in user. */
  readonly me: string | undefined;
  readonly now: number;
  readonly isStale: boolean;
};

const columns = ['Name', 'Repository and branch', 'Status', 'Services', 'Lease', 'Created by'] as const;

export function EnvironmentTable({ environments, me, now, isStale }: TableProps) {
  return (
    <Table caption="Environments" columns={columns} isStale={isStale}>
      {environments.map((environment) => (
        <tr key={environment.id}>
          <th scope="row" className={styles['name']}>
            <NameLink of={environment} />
          </th>
          <td data-label="Source" className="wrap">
            <div>
              {environment.repository}
              <span className={shared['small']}>
                <bdi>{environment.branch}</bdi>
                {environment.sha !== null && (
                  <>
                    {' '}
                    at <code>{shortSha(environment.sha)}</code>
                  </>
                )}
              </span>
            </div>
          </td>
          <td data-label="Status" className={styles['status']}>
            <div>
              <EnvironmentBadge of={environment.status} />
              {environment.statusMessage !== null && (
                <span className={shared['small']}>{environment.statusMessage}</span>
              )}
            </div>
          </td>
          <td data-label="Services" className={styles['nowrap']}>
            {servicesWords(environment)}
          </td>
          <td data-label="Lease" className={styles['nowrap']}>
            <Lease of={environment} now={now} />
          </td>
          <td data-label="Created by" className="wrap">
            <bdi>{creatorWords(environment, me)}</bdi>
          </td>
        </tr>
      ))}
    </Table>
  );
}

function NameLink({ of: { id, uuid } }: { of: Environment }) {
  return (
    <Link to="/environments/$id" params={{ id }}>
      <bdi>{uuid}</bdi>
    </Link>
  );
}

function servicesWords(environment: Environment): string {
  const { services, activeServiceCount } = environment;
  if (isEnding(environment) || services.length === 0) return '–';
  const ready = services.filter(({ status }) => status === 'ready').length;
  return `${ready} of ${activeServiceCount} ready`;
}
