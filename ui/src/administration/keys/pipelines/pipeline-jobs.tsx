import { SegmentedControl, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { commandLineDigest } from '../../../api/command-line.ts';
import type { Schemas } from '../../../api/contract.ts';
import type { Key } from '../../../keys/key-words.ts';
import { type Issuer, platforms } from '../../../keys/trust/platforms.ts';
import { Command } from '../../../shell/command.tsx';
import { createSite, githubPipeline, gitlabPipeline, kubernetesPipeline } from '../../../shell/snippets.ts';
import own from './pipelines.module.css';

const jobs = { github: githubPipeline, gitlab: gitlabPipeline, kubernetes: kubernetesPipeline } as const;
const names = ['github', 'gitlab', 'kubernetes'] as const;

type JobsProps = {
  readonly of: Key;
  readonly rules: readonly Schemas['TrustRule'][];
  /** The issuers of the key policy. */
  readonly issuers: readonly Issuer[];
};

/** Jobs to copy that use the key without its value. Shows nothing where this server serves no command line. */
export function PipelineJobs({ of: key, rules, issuers }: JobsProps) {
  const { data: digest } = useQuery(commandLineDigest);
  const [chosen, setChosen] = useState<keyof typeof jobs>();
  if (digest === undefined || digest === null) return null;
  const rulesFor = (name: keyof typeof jobs) =>
    rules.filter(({ issuer }) => issuers.some(({ url, preset }) => url === issuer && preset === name));
  const platform = chosen ?? names.find((name) => rulesFor(name).length > 0) ?? 'github';
  const canPublish = key.scopes.includes('sites:write');
  const claims = rulesFor(platform)[0]?.claims ?? {};
  return (
    <details className={own['jobs']}>
      <summary>The job to copy</summary>
      <div>
        <SegmentedControl
          aria-label="Platform"
          size="xs"
          value={platform}
          onChange={setChosen}
          data={names.map((value) => ({ value, label: platforms[value].label }))}
        />
      </div>
      <Text size="sm">
        The job needs no secret.{' '}
        {canPublish ? (
          <>
            It publishes to a site that this key created. To create one, let a job run{' '}
            <code>{createSite}</code> once instead of the last command, and replace SITE_ID by the id that it
            prints.
          </>
        ) : (
          'It shows what this key may do.'
        )}
        {platform === 'kubernetes' && ' The image needs Node.js, curl and the folder dist.'}
      </Text>
      <Command
        text={jobs[platform]({ keyId: key.id, canPublish, claims })}
        of={`job for ${platforms[platform].label}`}
      />
    </details>
  );
}
