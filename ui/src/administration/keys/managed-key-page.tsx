import { Button, Modal, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, Navigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { Problem } from '../../shell/problem.tsx';
import { Exposed } from '../../keys/detail/exposed.tsx';
import { Fact, Facts } from '../../keys/detail/facts.tsx';
import { KeyHead } from '../../keys/detail/key-head.tsx';
import shared from '../../shell/page.module.css';
import type { KeyTab } from '../../keys/detail/key-tab.ts';
import { Pair } from '../../keys/detail/pair.tsx';
import { Timeline } from '../../keys/detail/timeline.tsx';
import { Usage } from '../../keys/detail/usage.tsx';
import type { Key } from '../../keys/key-words.ts';
import { useServerNow } from '../now.ts';
import { TextLink } from '../text-link.tsx';
import { canBeReplaced, homeOf, type ManagedHome } from './managed-key-words.ts';
import { Pipelines } from './pipelines/pipelines.tsx';
import { ReplaceKey } from './replace-key.tsx';
import { RevokeServiceKey, RevokeUserKeys } from './revoke-keys.tsx';
import { keyAt } from '../../keys/queries.ts';
import { focusIfLost } from '../../shell/focus.ts';

const serviceRoute = getRouteApi('/administration/admin/service-keys/$id');
const userRoute = getRouteApi('/administration/admin/user-keys/$id');

/** One service key: its facts and its actions. */
export function ServiceKeyPage() {
  const navigate = serviceRoute.useNavigate();
  return (
    <ManagedKeyPage
      home="/admin/service-keys"
      id={serviceRoute.useParams().id}
      tab={serviceRoute.useSearch()}
      onTab={(search) => void navigate({ search, replace: true })}
    />
  );
}

/** A user's key. An administrator can view and revoke it, but not change it. */
export function UserKeyPage() {
  const navigate = userRoute.useNavigate();
  return (
    <ManagedKeyPage
      home="/admin/user-keys"
      id={userRoute.useParams().id}
      tab={userRoute.useSearch()}
      onTab={(search) => void navigate({ search, replace: true })}
    />
  );
}

type PageProps = {
  readonly home: ManagedHome;
  readonly id: string;
  readonly tab: KeyTab;
  readonly onTab: (tab: KeyTab) => void;
};

function ManagedKeyPage(props: PageProps) {
  const { home, id } = props;
  const { data: key, error, refetch } = useQuery(keyAt(home, id));
  const now = useServerNow();
  // A user with only the id may have opened the page of the wrong kind of key.
  if (key !== undefined && homeOf(key) !== home)
    return <Navigate to={`${homeOf(key)}/$id`} params={{ id }} replace />;
  return (
    <>
      <title>{`${key?.name ?? 'Key'} · Postern`}</title>
      <TextLink to={home} size="sm">
        {home === '/admin/service-keys' ? '← Service keys' : '← User keys'}
      </TextLink>
      {key === undefined && error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {key === undefined && error === null && (
        <Skeleton mt="md" height={240} radius="lg" role="status" aria-label="Loading the key" />
      )}
      {key !== undefined && <Whole of={key} now={now} {...props} />}
    </>
  );
}

function Whole({ of: key, now, home, tab, onTab }: PageProps & { of: Key; now: number }) {
  const [step, setStep] = useState<'replace' | 'revoke'>();
  const heading = useRef<HTMLHeadingElement>(null);
  const close = () => setStep(undefined);
  const toHeading = () => focusIfLost(heading.current);
  return (
    <>
      <KeyHead of={key} now={now} heading={heading}>
        {key.type === 'service' && (
          <Button
            variant="default"
            renderRoot={(props) => (
              <Link to="/admin/service-keys/$id/narrow" params={{ id: key.id }} {...props} />
            )}
          >
            Narrow
          </Button>
        )}
        {canBeReplaced(key) && (
          <Button variant="default" onClick={() => setStep('replace')}>
            Replace
          </Button>
        )}
        <Button color="red" variant="light" onClick={() => setStep('revoke')}>
          Revoke
        </Button>
      </KeyHead>
      <Exposed of={key} now={now} home={home}>
        {canBeReplaced(key) && (
          <Button size="xs" variant="default" onClick={() => setStep('replace')}>
            Replace the exposed key
          </Button>
        )}
        <Button size="xs" color="red" onClick={() => setStep('revoke')}>
          Revoke the exposed key
        </Button>
      </Exposed>
      <Pair of={key} now={now} home={home} />
      <div className={shared['stack']}>
        <Facts of={key} now={now} reader="administrator">
          {key.type === 'personal' ? <Owner of={key} /> : <Creator of={key} />}
          {key.type === 'service' && (
            <Fact name="Value">
              {key.credential === 'federated'
                ? 'None. The key is federated: pipelines exchange ID tokens.'
                : 'Stored where it is used'}
            </Fact>
          )}
        </Facts>
        {key.type === 'service' && <Pipelines of={key} now={now} />}
        <Usage home={home} id={key.id} now={now} span={tab.span} onSpan={onTab} />
        <Timeline home={home} id={key.id} now={now} />
      </div>
      {step === 'replace' && (
        <ReplaceKey
          of={key}
          onClose={() => {
            close();
            toHeading();
          }}
        />
      )}
      <Modal
        opened={step === 'revoke'}
        title={key.type === 'service' ? 'Revoke this service key?' : 'Revoke this key?'}
        onClose={close}
      >
        {key.type === 'service' ? (
          <RevokeServiceKey of={key} now={now} onClose={close} onDone={toHeading} />
        ) : (
          <RevokeUserKeys of={[key]} now={now} onClose={close} onDone={toHeading} />
        )}
      </Modal>
    </>
  );
}

function Owner({ of: { owner } }: { of: Key }) {
  return (
    <Fact name="Owner">
      {owner === null ? (
        'Nobody'
      ) : (
        <>
          <TextLink to="/admin/users/$id" params={{ id: owner.id }} inherit underline="always">
            <bdi>{owner.name ?? owner.id}</bdi>
          </TextLink>{' '}
          <span className="quiet">(</span>
          <TextLink to="/admin/user-keys" search={{ owner: owner.id }} inherit underline="always">
            all their keys
          </TextLink>
          <span className="quiet">)</span>
        </>
      )}
    </Fact>
  );
}

function Creator({ of: { createdBy } }: { of: Key }) {
  return (
    <Fact name="Created by">
      {createdBy === null ? (
        <span className="quiet">Nobody</span>
      ) : (
        <TextLink to="/admin/users/$id" params={{ id: createdBy.id }} inherit underline="always">
          <bdi>{createdBy.name ?? createdBy.id}</bdi>
        </TextLink>
      )}
    </Fact>
  );
}
