import { Badge, Box, Button, Select, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../../api/contract.ts';
import { ProblemTable } from '../../environments/problem-table.tsx';
import { countOf } from '../../shell/count.ts';
import { Problem } from '../../shell/problem.tsx';
import common from '../admin.module.css';
import { branchesOf, validationOf } from '../queries.ts';

/** Whether the postern.yaml of a branch is valid, as the git server has it now. */
export function ConfigurationFile({ of: { fullName, defaultBranch } }: { of: Schemas['Repository'] }) {
  const [branch, setBranch] = useState(defaultBranch);
  const branches = useQuery(branchesOf(fullName));
  const { data, error, refetch, isFetching } = useQuery(validationOf(fullName, branch));
  const names = new Set([defaultBranch, ...(branches.data ?? []).map(({ name }) => name)]);
  return (
    <section className={common['card']} aria-labelledby="configuration-file">
      <div className={common['head']}>
        <h2 id="configuration-file">postern.yaml</h2>
        {data !== undefined && (
          <Badge color={data.valid ? 'green' : 'red'}>
            {data.valid ? 'Valid' : countOf(data.problems.length, 'problem')}
          </Badge>
        )}
      </div>
      <div className={common['buttons']}>
        <Select
          aria-label="Branch"
          searchable
          allowDeselect={false}
          data={[...names]}
          value={branch}
          onChange={(name) => setBranch(name ?? defaultBranch)}
        />
        <Button variant="default" loading={isFetching} onClick={() => void refetch()}>
          Check again
        </Button>
      </div>
      {error !== null && !isFetching && (
        <Box mt="sm">
          <Problem error={error} />
        </Box>
      )}
      {data !== undefined && (
        <Text size="sm" my="sm">
          {data.valid ? 'The file is valid' : 'The file cannot be used'} at commit{' '}
          <code>{data.sha.slice(0, 12)}</code>.
        </Text>
      )}
      {data !== undefined && data.problems.length > 0 && (
        <ProblemTable problems={data.problems} isStale={isFetching} />
      )}
    </section>
  );
}
