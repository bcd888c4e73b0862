import { Anchor, Button, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import type { Key } from '../key-words.ts';
import { RevokeDialog } from '../revoke-dialog.tsx';
import { Exposed } from './exposed.tsx';
import { Facts } from './facts.tsx';
import { KeyHead } from './key-head.tsx';
import shared from '../../shell/page.module.css';
import { Pair } from './pair.tsx';
import { Timeline } from './timeline.tsx';
import { Usage } from './usage.tsx';
import { myKey, myPolicy } from '../queries.ts';
import { focusIfLost } from '../../shell/focus.ts';

const route = getRouteApi('/settings/keys/$id');

/** One of the user's keys: its facts and its actions. */
export function KeyPage() {
  const { id } = route.useParams();
  const { data: key, error, refetch } = useQuery(myKey(id));
  const { data: policy } = useQuery(myPolicy);
  const now = useNow() + (policy?.clockOffsetMs ?? 0);
  return (
    <>
      <title>{`${key?.name ?? 'API key'} · Postern`}</title>
      <Anchor component={Link} to="/settings/keys" size="sm">
        ← API keys
      </Anchor>
      {key === undefined && error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {key === undefined && error === null && (
        <Skeleton mt="md" height={240} radius="lg" role="status" aria-label="Loading the key" />
      )}
      {key !== undefined && <Whole of={key} now={now} />}
    </>
  );
}

function Whole({ of: key, now }: { of: Key; now: number }) {
  const { span } = route.useSearch();
  const navigate = route.useNavigate();
  const [isRevoking, setRevoking] = useState(false);
  const heading = useRef<HTMLHeadingElement>(null);
  return (
    <>
      <KeyHead of={key} now={now} heading={heading}>
        <Button
          variant="default"
          renderRoot={(props) => <Link to="/settings/keys/$id/narrow" params={{ id: key.id }} {...props} />}
        >
          Narrow
        </Button>
        <Button
          variant="default"
          renderRoot={(props) => <Link to="/settings/keys/$id/replace" params={{ id: key.id }} {...props} />}
        >
          Replace
        </Button>
        <Button color="red" variant="light" onClick={() => setRevoking(true)}>
          Revoke
        </Button>
      </KeyHead>
      <Exposed of={key} now={now} home="/settings/keys">
        {key.replacedBy === null && (
          <Button
            size="xs"
            variant="default"
            renderRoot={(props) => (
              <Link to="/settings/keys/$id/replace" params={{ id: key.id }} {...props} />
            )}
          >
            Replace the exposed key
          </Button>
        )}
        <Button size="xs" color="red" onClick={() => setRevoking(true)}>
          Revoke the exposed key
        </Button>
      </Exposed>
      <Pair of={key} now={now} home="/settings/keys" />
      <div className={shared['stack']}>
        <Facts of={key} now={now} />
        <Usage
          home="/settings/keys"
          id={key.id}
          now={now}
          span={span}
          onSpan={(search) => void navigate({ search, replace: true })}
        />
        <Timeline home="/settings/keys" id={key.id} now={now} />
      </div>
      <RevokeDialog
        revoking={isRevoking ? key : undefined}
        now={now}
        onClose={() => setRevoking(false)}
        onRevoked={() => focusIfLost(heading.current)}
      />
    </>
  );
}
