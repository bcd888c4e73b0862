import { Anchor, Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/contract.ts';
import { Moment } from '../../shell/moment.tsx';
import styles from './notices.module.css';

type Notice = Schemas['Notice'];
type Kind = Notice['kind'];

const titles: Readonly<Record<Kind, { readonly title: string; readonly weight: 'bad' | 'warn' | 'calm' }>> = {
  key_expires_7d: { title: 'A key expires within a week', weight: 'warn' },
  key_expires_1d: { title: 'A key expires within a day', weight: 'warn' },
  key_expired: { title: 'A key has expired', weight: 'calm' },
  key_exposed: { title: 'A key was exposed', weight: 'bad' },
  key_dead_use: { title: 'Something uses a key that no longer works', weight: 'warn' },
  key_suspended: { title: 'A key is suspended', weight: 'warn' },
  site_expires_7d: { title: 'A site expires within a week', weight: 'warn' },
  site_expires_1d: { title: 'A site expires within a day', weight: 'warn' },
  site_expired: { title: 'A site has expired', weight: 'calm' },
  site_taken_down: { title: 'A site was taken down', weight: 'bad' },
  site_put_back: { title: 'A site was reinstated', weight: 'calm' },
  environment_expires_1d: { title: 'The lease of an Environment ends within a day', weight: 'warn' },
  environment_expires_1h: { title: 'The lease of an Environment ends within an hour', weight: 'warn' },
  environment_expired: { title: 'The lease of an Environment has ended', weight: 'calm' },
  environment_deploy_failed: { title: 'A deploy failed', weight: 'bad' },
  passkey_added: { title: 'A passkey was added', weight: 'calm' },
  passkey_removed: { title: 'A passkey was removed', weight: 'calm' },
  passkey_copied: { title: 'A passkey may have a copy', weight: 'bad' },
  passkeys_reset: { title: 'Your passkeys were reset', weight: 'warn' },
  recovery_code_used: { title: 'A recovery code was used', weight: 'warn' },
};

type ListProps = { notices: readonly Notice[]; now: number; onRead: (id: string) => void };

export function NoticeList({ notices, now, onRead }: ListProps) {
  return (
    <ul className={styles['list']}>
      {notices.map((notice) => (
        <li key={notice.id} data-weight={titles[notice.kind].weight} data-read={notice.readAt !== null}>
          <div className={styles['text']}>
            <h2>{titles[notice.kind].title}</h2>
            <p>
              <bdi>{notice.message}</bdi>
            </p>
            <p className="quiet">
              <Moment at={notice.createdAt} now={now} />
              {notice.readAt !== null && ' · read'}
            </p>
          </div>
          <div className={styles['actions']}>
            <ToSubject of={notice} />
            {notice.readAt === null && (
              <Button
                variant="default"
                size="xs"
                aria-label={`Mark as read: ${[titles[notice.kind].title, notice.keyName ?? notice.siteName ?? notice.environmentName ?? []].flat().join(', ')}`}
                onClick={() => onRead(notice.id)}
              >
                Mark as read
              </Button>
            )}
          </div>
        </li>
      ))}
    </ul>
  );
}

function ToSubject({ of: { kind, keyId, siteId, environmentId } }: { of: Notice }) {
  if (kind.startsWith('passkey') || kind === 'recovery_code_used') {
    return (
      <Anchor size="sm" renderRoot={(props) => <Link to="/settings/passkeys" {...props} />}>
        Go to your passkeys
      </Anchor>
    );
  }
  if (keyId !== null) {
    return (
      <Anchor
        size="sm"
        renderRoot={(props) => <Link to="/settings/keys/$id" params={{ id: keyId }} {...props} />}
      >
        Go to the key
      </Anchor>
    );
  }
  if (environmentId !== null) {
    return (
      <Anchor
        size="sm"
        renderRoot={(props) => <Link to="/environments/$id" params={{ id: environmentId }} {...props} />}
      >
        Go to the Environment
      </Anchor>
    );
  }
  if (siteId === null) return null;
  return (
    <Anchor size="sm" href={`/sites/${siteId}`}>
      Go to the site
    </Anchor>
  );
}
