import { Anchor, Badge, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Schemas } from '../../api/contract.ts';
import { exactly } from '../../shell/time.ts';
import { Scopes } from '../../keys/standing.tsx';
import styles from './refusals.module.css';
import { keyAt } from '../../keys/queries.ts';

type Refusal = Schemas['KeyRefusal'];

/** Shows why the server refused the request, what to do about it, and the facts. */
export function Explanation({ of: refusal }: { of: Refusal }) {
  // Only administrators find refused exchanges, and only service keys have them.
  const home = refusal.code === 'invalid_grant' ? '/admin/service-keys' : '/settings/keys';
  const { data: key } = useQuery(keyAt(home, refusal.keyId));
  return (
    <section className={styles['card']} aria-label="Explanation">
      <div className={styles['what']}>
        <div className={styles['code']}>
          <Badge color="red">{refusal.status}</Badge>
          <code>{refusal.code}</code>
        </div>
        <Title order={2} size="h4">
          {refusal.keyStatus === null ? refusal.message : `The key is ${refusal.keyStatus}.`}
        </Title>
        <p className={styles['next']}>
          <b>What to do.</b> <Advice of={refusal} />
        </p>
      </div>
      <dl className={styles['facts']}>
        <Fact name="Key">
          <Anchor
            inherit
            renderRoot={(props) => <Link to={`${home}/$id`} params={{ id: refusal.keyId }} {...props} />}
          >
            <bdi>{key?.name ?? refusal.keyId}</bdi>
          </Anchor>{' '}
          <code className="quiet">{refusal.keyId}</code>
        </Fact>
        {refusal.route !== null && (
          <Fact name="Route">
            <code>{refusal.route}</code>
          </Fact>
        )}
        {refusal.requiredScope !== null && (
          <Fact name="The route needs">
            <Scopes of={[refusal.requiredScope]} />
          </Fact>
        )}
        {key !== undefined && refusal.requiredScope !== null && (
          <Fact name="The key has now">
            <Scopes of={key.scopes} />
          </Fact>
        )}
        <Fact name="When">{whenOf(refusal)}</Fact>
        <Fact name="From">
          {refusal.address ?? 'unknown'}
          {refusal.agent !== null && (
            <>
              , <bdi>{refusal.agent}</bdi>
            </>
          )}
        </Fact>
      </dl>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Replaces the server's hint where this page knows more. */
function Advice({ of: refusal }: { of: Refusal }) {
  const newKey = (words: string, scope: string | null) => (
    <Anchor
      inherit
      underline="always"
      renderRoot={(props) => (
        <Link to="/settings/keys/new" search={scope === null ? {} : { scopes: scope }} {...props} />
      )}
    >
      {words}
    </Anchor>
  );
  if (refusal.keyStatus !== null)
    return <>This key no longer works. {newKey('Create a new key', null)} and give it to the script.</>;
  if (refusal.code === 'forbidden_scope' && refusal.requiredScope !== null) {
    return (
      <>
        A key cannot get more rights. {newKey('Create one with', refusal.requiredScope)}{' '}
        <code>{refusal.requiredScope}</code>, and give it to the script.
      </>
    );
  }
  if (refusal.code === 'rate_limited')
    return (
      <>
        All your keys share one limit. Let the script wait as long as the response’s Retry-After header says,
        and send requests less often.
      </>
    );
  return refusal.hint;
}

function whenOf({ count, firstAt, lastAt }: Refusal): string {
  const at = exactly(Date.parse(firstAt));
  if (count === 1) return at;
  return `${at}; ${count} times like this, the last ${exactly(Date.parse(lastAt))}`;
}
