import { Alert, Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Environment } from '../environment-words.ts';

const titles: Readonly<Partial<Record<Environment['status'], string>>> = {
  error: 'The last deploy failed',
  config_error: 'postern.yaml cannot be deployed',
  paused: 'Deploys are paused',
  asleep: 'It is asleep',
  tearing_down: 'It is being torn down',
  torn_down: 'It was torn down',
};

const usual: Readonly<Partial<Record<Environment['status'], string>>> = {
  asleep: 'Its processes were stopped, because it had not been used for a while. Open it to wake it.',
  tearing_down: 'It is no longer served. Everything that ran is being removed.',
  torn_down: 'This page remains for 30 days.',
};

/** Explains the status in a sentence, with a link to more. */
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
          See what happened and how to fix it
        </Anchor>
      )}
    </Alert>
  );
}
