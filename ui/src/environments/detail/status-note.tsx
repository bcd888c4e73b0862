import { Alert, Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Environment } from '../environment-words.ts';

const titles: Readonly<Partial<Record<Environment['status'], string>>> = {
  error: 'The last deploy did not succeed',
  config_error: 'postern.yaml cannot be deployed',
  paused: 'Deploys are paused',
  asleep: 'It is asleep',
  tearing_down: 'It is being torn down',
  torn_down: 'It was torn down',
};

const usual: Readonly<Partial<Record<Environment['status'], string>>> = {
  asleep: 'Its processes were stopped, because it was not used for a while. Open it to wake it.',
  tearing_down: 'Nothing of it is served any more. What ran is being removed.',
  torn_down: 'Nothing of it is left but this page, which is kept for 30 days.',
};

/** What to know about the status, in a sentence, and where to read more. */
export function StatusNote({
  of: { id, status, statusMessage },
  hasWhy,
}: {
  of: Environment;
  hasWhy: boolean;
}) {
  const title = titles[status];
  const message = statusMessage ?? usual[status];
  if (title === undefined && message === undefined) return null;
  const isWrong = status === 'error' || status === 'config_error';
  return (
    <Alert color={isWrong ? 'red' : 'blue'} mb="md" {...(title === undefined ? {} : { title })}>
      {message}{' '}
      {isWrong && hasWhy && (
        <Anchor
          inherit
          underline="always"
          renderRoot={(props) => (
            <Link to="/environments/$id" params={{ id }} search={{ tab: 'why' }} {...props} />
          )}
        >
          See why, and what to do
        </Anchor>
      )}
    </Alert>
  );
}
