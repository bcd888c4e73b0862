import { Alert, Anchor, Button, Text } from '@mantine/core';
import { useLocation } from '@tanstack/react-router';
import { ApiProblem } from '../api/client.ts';
import { freshSignIn } from './fresh-sign-in.tsx';

/** Shows the server's error message, with the request id to look up in its log. */
export function Problem({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { title, message, hint, requestId } = wordsOf(error);
  return (
    <Alert color="red" title={title} role="alert">
      <Text size="sm">
        {message} {hint}
      </Text>
      {requestId !== null && (
        <Text size="sm" mt={4}>
          Request <code>{requestId}</code>
        </Text>
      )}
      {(isSignedOut(error) || isStale(error)) && (
        <Text size="sm" mt={4}>
          <SignInAgain isFresh={isStale(error)} />
        </Text>
      )}
      {onRetry !== undefined && !isMissing(error) && (
        <Button size="xs" variant="default" mt="sm" onClick={onRetry}>
          Try again
        </Button>
      )}
    </Alert>
  );
}

/** In another tab, so that what is typed here stays; there it leads to the same page. */
export function SignInAgain({ isFresh = false }: { isFresh?: boolean }) {
  const { href } = useLocation();
  return (
    <Anchor
      href={isFresh ? freshSignIn(href) : `/auth/login?returnTo=${encodeURIComponent(href)}`}
      target="_blank"
      inherit
      underline="always"
    >
      Sign in again in another tab
    </Anchor>
  );
}

/** A retry does not help if the item does not exist. */
function isMissing(error: unknown): boolean {
  return error instanceof ApiProblem && (error.status === 404 || error.status === 410);
}

function isSignedOut(error: unknown): boolean {
  return error instanceof ApiProblem && error.status === 401;
}

function isStale(error: unknown): boolean {
  return error instanceof ApiProblem && error.code === 'fresh_authentication_required';
}

function wordsOf(error: unknown) {
  if (!(error instanceof ApiProblem)) {
    return {
      title: 'This did not work',
      message: 'An error occurred on this page.',
      hint: 'Reload the page.',
      requestId: null,
    };
  }
  const { message, hint, requestId } = error;
  if (isSignedOut(error)) {
    return {
      title: 'You are signed out',
      message: 'Your session has ended; nothing was changed, and what you typed is still here.',
      hint: 'Sign in, come back and try again.',
      requestId,
    };
  }
  if (isStale(error)) {
    return {
      title: 'Sign in again first',
      message:
        'Your last sign-in is too old for this; nothing was changed, and what you typed is still here.',
      hint: 'Sign in, come back and try again.',
      requestId,
    };
  }
  return { title: titleOf(error.status), message, hint, requestId };
}

function titleOf(status: number): string {
  if (status === 0) return 'No connection';
  if (status === 403) return 'You may not do this';
  if (status === 429) return 'Too many requests';
  return status >= 500 ? 'The server could not answer' : 'This did not work';
}
