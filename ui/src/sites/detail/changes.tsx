import { Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../../api/contract.ts';
import { Problem } from '../../shell/problem.tsx';
import { Pages } from '../../lists/pages.tsx';
import { bytesInWords } from '../../shell/bytes.ts';
import { countOf } from '../../shell/count.ts';
import { versionChanges } from '../queries.ts';
import styles from './detail.module.css';

const pageSize = 50;
const words = { added: 'Added', changed: 'Changed', removed: 'Removed' } as const;

/** The files that would change for readers if this version went live. */
export function Changes({ siteId, number }: { siteId: string; number: number }) {
  const [page, setPage] = useState(1);
  const { data, error, refetch } = useQuery(versionChanges(siteId, number, page, pageSize));
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton height={120} radius="md" role="status" aria-label="Comparing" />;
  const { against, added, changed, removed, files } = data.data;
  const live = against === null ? 'nothing' : `version ${against}`;
  if (files.length === 0) return <Text size="sm">It holds the same files as {live}, which is live.</Text>;
  return (
    <>
      <Text size="sm" mb="xs">
        If it goes live instead of {live}: {countOf(added, 'file')} added, {changed} changed, {removed}{' '}
        removed.
      </Text>
      <ul className={styles['diff']}>
        {files.map(({ path, change, ...sizes }) => (
          <li key={path}>
            <b data-change={change}>{words[change]}</b>
            <bdi>
              <code>{path}</code>
            </bdi>
            <span className="quiet">{sizeWords(sizes)}</span>
          </li>
        ))}
      </ul>
      <Pages page={page} total={data.metadata.pagination.total} onChange={setPage} />
    </>
  );
}

function sizeWords({ size, sizeBefore }: Pick<Schemas['SiteFileChange'], 'size' | 'sizeBefore'>): string {
  if (size === null || sizeBefore === null) return bytesInWords(size ?? sizeBefore ?? 0);
  return size === sizeBefore ? bytesInWords(size) : `${bytesInWords(sizeBefore)} → ${bytesInWords(size)}`;
}
