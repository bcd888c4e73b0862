import { Alert, Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { Moment } from '../../shell/moment.tsx';
import type { KeyHome } from '../key-home.ts';
import type { Key } from '../key-words.ts';

type PairProps = { of: Key; now: number; home: KeyHome };

/** Names the key that this one replaces or is replaced by, and links to the replacement. */
export function Pair({ of: key, now, home }: PairProps) {
  if (key.replacedBy !== null && key.status === 'active') {
    return (
      <Alert mb="md" title="This key is being replaced">
        {key.expiresAt !== null && (
          <>
            It expires <Moment at={key.expiresAt} now={now} isAhead /> at the latest.{' '}
          </>
        )}
        {home === '/settings/keys' ? (
          <Anchor
            inherit
            underline="always"
            renderRoot={(props) => (
              <Link to="/settings/keys/$id/replace" params={{ id: key.id }} {...props} />
            )}
          >
            Continue the replacement
          </Anchor>
        ) : (
          <>
            Its successor is <KeyLink id={key.replacedBy} home={home} />.
          </>
        )}
      </Alert>
    );
  }
  if (key.replaces === null && key.replacedBy === null) return null;
  return (
    <p className="quiet">
      {key.replacedBy !== null && (
        <>
          Replaced by <KeyLink id={key.replacedBy} home={home} />.{' '}
        </>
      )}
      {key.replaces !== null && (
        <>
          Replaces <KeyLink id={key.replaces} home={home} />.
        </>
      )}
    </p>
  );
}

function KeyLink({ id, home }: { id: string; home: KeyHome }) {
  return (
    <Anchor
      inherit
      underline="always"
      renderRoot={(props) => <Link to={`${home}/$id`} params={{ id }} {...props} />}
    >
      <code>{id}</code>
    </Anchor>
  );
}
