import { Alert, Anchor, Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { commandLineDigest } from '../../api/command-line.ts';
import { CiJobs } from '../../shell/ci-jobs.tsx';
import { Command } from '../../shell/command.tsx';
import { Problem } from '../../shell/problem.tsx';
import { getCommandLine } from '../../shell/snippets.ts';
import { PageHead } from '../../lists/page-head.tsx';
import styles from '../../shell/page.module.css';

/** The download of this server's command line, with its digest. */
export function CommandLinePage() {
  const { data: digest, error, refetch } = useQuery(commandLineDigest);
  return (
    <>
      <PageHead
        title="Command line"
        intro="Publish sites, follow Environments and check keys from a terminal or a pipeline. It needs Node 22.12 or newer."
      />
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {digest === undefined && error === null && (
        <Skeleton height={160} radius="lg" role="status" aria-label="Loading" />
      )}
      {digest === null && (
        <Alert color="yellow" title="This server serves no command line">
          An administrator builds it with <code>npm run build:cli</code>.
        </Alert>
      )}
      {typeof digest === 'string' && <Get digest={digest} />}
    </>
  );
}

function Get({ digest }: { digest: string }) {
  return (
    <section className={styles['card']}>
      <Text size="sm" mb={4}>
        Download{' '}
        <Anchor href="/cli/postern.mjs" underline="always">
          postern.mjs
        </Anchor>
        , the version of this server, and check it. The digest shows that the file arrived whole. To trust it
        without this server, compare the digest with one from your administrator.
      </Text>
      <Command text={getCommandLine(digest)} of="get the command line" />
      <Text size="sm" mt="lg" mb={4}>
        Sign in with a browser. A script sets <code>POSTERN_URL</code> and <code>POSTERN_KEY</code> instead.
      </Text>
      <Command text={`postern login ${location.origin}`} of="sign in" />
      <Text size="sm" mt="lg" mb={4}>
        Publish a folder. After the first time, it sends only what changed.
      </Text>
      <Command text="postern deploy" of="publish a folder" />
      <CiJobs />
    </section>
  );
}
