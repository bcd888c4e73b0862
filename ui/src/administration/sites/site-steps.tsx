import { Text } from '@mantine/core';
import { useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import { Confirm } from '../../shell/confirm.tsx';
import common from '../admin.module.css';
import { ReasonField } from '../reason-field.tsx';
import { FreshSignIn } from '../../shell/fresh-sign-in.tsx';

/** Takes down or reinstates a site, without showing its content. */
export type Stopping = { readonly id: string; readonly name: string | null };

type StepProps = { readonly onClose: () => void; readonly onDone: () => void };

export function TakeDown({ of: site, onClose, onDone }: StepProps & { of: Stopping }) {
  const [reason, setReason] = useState('');
  const params = { path: { id: site.id } };
  return (
    <Confirm
      act={() => unwrap(api.POST('/sites/{id}/take-down', { params, body: { reason: reason.trim() } }))}
      said="The site is taken down."
      refresh={['admin', 'sites']}
      confirm="Take it down"
      keep="Leave it"
      isReady={reason.trim() !== ''}
      onClose={onClose}
      onDone={onDone}
    >
      <div className={common['stack']}>
        <Text size="sm">
          {site.name !== null && (
            <b className="wrap">
              <bdi>{site.name}</bdi>{' '}
            </b>
          )}
          <code>{site.id}</code> and its previews stop being served to anyone within a second. Nothing is
          deleted, and its owner can still publish to it.
        </Text>
        <ReasonField
          description="Its owner reads it word for word. It is also recorded in the audit log."
          placeholder="Phishing, reported by the bank on Monday"
          isRequired
          isFirst
          value={reason}
          onChange={setReason}
        />
      </div>
    </Confirm>
  );
}

export function PutBack({ id, onClose, onDone }: StepProps & { id: string }) {
  const [reason, setReason] = useState('');
  return (
    <FreshSignIn>
      <Confirm
        act={() =>
          unwrap(
            api.POST('/sites/{id}/put-back', { params: { path: { id } }, body: { reason: reason.trim() } }),
          )
        }
        said="The site is served again."
        refresh={['admin', 'sites']}
        confirm="Serve it again"
        keep="Not yet"
        isHarmless
        isReady={reason.trim() !== ''}
        onClose={onClose}
        onDone={onDone}
      >
        <div className={common['stack']}>
          <Text size="sm">
            <code>{id}</code> is served again at the same address. If it is private, browsers need new grants.
          </Text>
          <ReasonField
            description="Recorded in the audit log."
            placeholder="The page was removed"
            isRequired
            isFirst
            value={reason}
            onChange={setReason}
          />
        </div>
      </Confirm>
    </FreshSignIn>
  );
}
