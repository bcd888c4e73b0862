import { Alert, Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { Moment } from '../../../app/moment.tsx';
import type { Key } from '../key-words.ts';

/** Of a key that replaces another, or is being replaced: which, and where to go on. */
export function Pair({ of: key, now }: { of: Key; now: number }) {
  if (key.replacedBy !== null && key.status === 'active') {
    return (
      <Alert mb="md" title="This key is being replaced">
        {key.expiresAt !== null && (
          <>
            It ends <Moment at={key.expiresAt} now={now} isAhead /> at the latest.{' '}
          </>
        )}
        <Anchor
          inherit
          underline="always"
          renderRoot={(props) => <Link to="/settings/keys/$id/replace" params={{ id: key.id }} {...props} />}
        >
          Go on with the replacement
        </Anchor>
      </Alert>
    );
  }
  if (key.replaces === null && key.replacedBy === null) return null;
  return (
    <p className="quiet">
      {key.replacedBy !== null && (
        <>
          Replaced by <KeyLink id={key.replacedBy} />.{' '}
        </>
      )}
      {key.replaces !== null && (
        <>
          Replaces <KeyLink id={key.replaces} />.
        </>
      )}
    </p>
  );
}

function KeyLink({ id }: { id: string }) {
  return (
    <Anchor
      inherit
      underline="always"
      renderRoot={(props) => <Link to="/settings/keys/$id" params={{ id }} {...props} />}
    >
      <code>{id}</code>
    </Anchor>
  );
}
