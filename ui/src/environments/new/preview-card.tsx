import { Badge, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/contract.ts';
import { countOf } from '../../shell/count.ts';
import { Problem } from '../../shell/problem.tsx';
import { kindWords, shortSha } from '../environment-words.ts';
import { ProblemTable } from '../problem-table.tsx';
import { previewOf } from '../queries.ts';
import styles from './new.module.css';

/** What postern.yaml says at the newest commit of the branch: its services, or its problems. */
export function PreviewCard({ repository, branch }: { repository: string; branch: string }) {
  const { data, error, refetch, isPending } = useQuery(previewOf(repository, branch));
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (isPending) return <Skeleton height={96} radius="md" role="status" aria-label="Reading postern.yaml" />;
  const { planned, problems, sha } = data;
  return (
    <div>
      <p className={styles['found']} role="status">
        <b>postern.yaml</b> at <code>{shortSha(sha)}</code>
        {planned === null ? (
          <Badge color="red">{countOf(problems.length, 'problem')}</Badge>
        ) : (
          <Badge color="green">{countOf(planned.services.length, 'service')}</Badge>
        )}
      </p>
      {planned === null ? (
        <>
          <p className={styles['warning']}>
            The first deploy of this commit ends with a configuration error. Correct the file and push it.
            Until a deploy succeeds, Postern deploys every push.
          </p>
          <ProblemTable problems={problems} />
        </>
      ) : (
        <ul className={styles['services']}>
          {planned.services.map((service) => (
            <PlannedService key={service.name} of={service} levels={planned.levels} />
          ))}
        </ul>
      )}
    </div>
  );
}

type Planned = Schemas['PlannedEnvironment'];

function PlannedService({
  of: { name, kind, isExposed, routes },
  levels,
}: {
  of: Planned['services'][number];
  levels: Planned['levels'];
}) {
  const level = levels.findIndex((names) => names.includes(name));
  const facts = [
    kindWords[kind],
    isExposed ? 'has a URL' : 'no URL',
    ...Object.entries(routes).map(([path, to]) => `${path} → ${to}`),
    ...(level > 0 ? [`starts after ${levels[level - 1]?.join(', ')}`] : []),
  ];
  return (
    <li>
      <b>{name}</b>
      <span className="quiet">{facts.join(' · ')}</span>
    </li>
  );
}
