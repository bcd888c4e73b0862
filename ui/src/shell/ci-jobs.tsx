import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { commandLineDigest } from '../api/command-line.ts';
import styles from './ci-jobs.module.css';
import { Command } from './command.tsx';
import { type DeployTo, githubJob, gitlabJob } from './snippets.ts';

/**
 * Jobs to copy that publish with the command line: to a site, or to the one that a committed postern.site.json names. Shows
 * nothing where this server serves no command line.
 */
export function CiJobs(to: DeployTo) {
  const { data: digest } = useQuery(commandLineDigest);
  if (digest === undefined || digest === null) return null;
  return (
    <details className={styles['jobs']}>
      <summary>Jobs for GitHub Actions and GitLab</summary>
      <Text size="sm" my="xs">
        {to.isServiceKey
          ? 'Store this service key '
          : 'Store a personal key of the owner of the site, with sites:write and an expiry, '}
        as the secret <code>POSTERN_KEY</code>, in GitLab as a masked variable.
        {to.isServiceKey && ' Its sites are public, and no key can publish to them after this one expires.'}
      </Text>
      {to.siteId === undefined && (
        <Text size="sm" my="xs">
          Publish once from your machine, and commit <code>postern.site.json</code>: the job publishes to the
          site that it names. Or add <code>--site ID</code>.
        </Text>
      )}
      <Text size="sm" fw={500} mb={4}>
        GitHub Actions
      </Text>
      <Command text={githubJob(to)} of="job for GitHub Actions" />
      <Text size="sm" fw={500} mt="sm" mb={4}>
        GitLab
      </Text>
      <Command text={gitlabJob(to)} of="job for GitLab" />
    </details>
  );
}
