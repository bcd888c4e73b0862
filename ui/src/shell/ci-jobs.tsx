import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { commandLineDigest } from '../api/command-line.ts';
import styles from './ci-jobs.module.css';
import { Command } from './command.tsx';
import { githubJob, gitlabJob } from './snippets.ts';

/** Jobs that publish with the command line, to copy; nothing where this server serves no command line. */
export function CiJobs({ siteId }: { siteId?: string }) {
  const { data: digest } = useQuery(commandLineDigest);
  if (digest === undefined || digest === null) return null;
  return (
    <details className={styles['jobs']}>
      <summary>Jobs for GitHub Actions and GitLab</summary>
      <Text size="sm" my="xs">
        Store a service key as the secret <code>POSTERN_KEY</code>, in GitLab as a masked variable. The job
        runs only the command line of this digest, which changes when the server is upgraded.
      </Text>
      <Text size="sm" fw={500} mb={4}>
        GitHub Actions
      </Text>
      <Command text={githubJob(digest, siteId)} of="job for GitHub Actions" />
      <Text size="sm" fw={500} mt="sm" mb={4}>
        GitLab
      </Text>
      <Command text={gitlabJob(digest, siteId)} of="job for GitLab" />
    </details>
  );
}
