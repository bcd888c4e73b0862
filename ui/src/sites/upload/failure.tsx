import { Alert, Anchor, Button, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { ApiProblem } from '../../api/client.ts';
import { Problem } from '../../shell/problem.tsx';
import { countOf } from '../../shell/count.ts';
import { Findings } from './findings.tsx';
import { isResumable, type Job } from './job.ts';
import { refusedIn } from './refused.ts';
import { canGoOn } from './send.ts';

type FailureProps = { readonly error: unknown; readonly job: Job; readonly onAgain: () => void };

/** Why an upload did not go live: the problems of each file, or the error of the request. The form keeps its input. */
export function UploadFailure({ error, job, onAgain }: FailureProps) {
  const found = refusedIn(error);
  if (!(error instanceof ApiProblem) || found.length === 0)
    return (
      <div>
        <Problem error={error} />
        <Button mt="sm" size="xs" variant="default" onClick={onAgain}>
          {againWords(error, job)}
        </Button>
      </div>
    );
  const hasKey = error.code === 'credential_in_content';
  return (
    <Alert color="red" role="alert" title={titleOf(hasKey, found.length)}>
      <Findings found={found} />
      {hasKey && (
        <Text size="sm" mt="sm">
          Others may know a key that was in files to be published. Postern has notified its owner.{' '}
          <Anchor component={Link} to="/settings/keys" inherit underline="always">
            Revoke it
          </Anchor>
          , remove it from the files, and choose the folder again.
        </Text>
      )}
      <Text size="sm" mt="sm">
        Fix the files and choose them again; the form keeps everything else. Request{' '}
        <code>{error.requestId}</code>
      </Text>
    </Alert>
  );
}

function againWords(error: unknown, job: Job): string {
  if (!canGoOn(error)) return 'Try again';
  return isResumable(job) ? 'Resume the upload' : 'Try again from the beginning';
}

function titleOf(hasKey: boolean, count: number): string {
  const what = countOf(count, 'problem');
  return hasKey
    ? `The files contain an API key: ${what}, nothing was published`
    : `The server found ${what}, nothing was published`;
}
