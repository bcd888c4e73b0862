import { Alert, Button, Group, Modal, Text } from '@mantine/core';
import { useBlocker } from '@tanstack/react-router';
import { useState } from 'react';
import { flushSync } from 'react-dom';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { queryClient } from '../../api/queries.ts';
import { announce } from '../../shell/announce.tsx';
import { FreshSignIn } from '../../shell/fresh-sign-in.tsx';
import { Problem } from '../../shell/problem.tsx';
import { exactly } from '../../shell/time.ts';
import { IssuedDialog } from '../../keys/new/issued-dialog.tsx';
import type { Key } from '../../keys/key-words.ts';
import { usualOverlap, verifyNote } from '../../keys/replace/overlap-field.tsx';
import common from '../admin.module.css';

/** A successor with the same rights. Both work until the new one is used, so that nothing stops in between. */
export function ReplaceKey({ of: key, onClose }: { of: Key; onClose: () => void }) {
  const [issued, setIssued] = useState<Schemas['RotatedKey']>();
  const [after, setAfter] = useState<Omit<Schemas['RotatedKey'], 'token'>>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  useBlocker({ shouldBlockFn: () => issued !== undefined, enableBeforeUnload: issued !== undefined });

  async function replace(): Promise<void> {
    setBusy(true);
    setError(undefined);
    try {
      const { data } = await unwrap(
        api.POST('/tokens/{id}/rotate', { params: { path: { id: key.id } }, body: usualOverlap }),
      );
      setIssued(data);
      announce('The successor is created. Store its value now.');
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  }

  async function stored(): Promise<void> {
    if (issued === undefined) return;
    const { token: _gone, ...rest } = issued;
    flushSync(() => {
      setIssued(undefined);
      setAfter(rest);
    });
    await queryClient.invalidateQueries({ queryKey: ['admin', 'keys'] });
  }

  if (issued !== undefined)
    return <IssuedDialog issued={issued} verifyNote={verifyNote} onStored={() => void stored()} />;
  if (after !== undefined) return <Afterwards of={after} predecessor={key.name} onClose={onClose} />;
  return (
    <Modal opened title="Replace this service key?" onClose={onClose}>
      <div className={common['stack']}>
        <Text size="sm">
          <b className="wrap">
            <bdi>{key.name}</bdi>
          </b>{' '}
          gets a successor with the same scopes, repositories and lifetime. The old key works until five
          minutes after the new one is first used, for 24 hours at most.
        </Text>
        <Alert color="yellow" title="A new identity">
          Sites that the old key published stay with it. The successor cannot change them. After the old key
          expires, no key can.
        </Alert>
        <FreshSignIn>
          {error !== undefined && <Problem error={error} />}
          <Group justify="flex-end" gap="sm">
            <Button variant="default" onClick={onClose} disabled={isBusy}>
              Not now
            </Button>
            <Button loading={isBusy} onClick={() => void replace()}>
              Create the successor
            </Button>
          </Group>
        </FreshSignIn>
      </div>
    </Modal>
  );
}

type AfterProps = {
  readonly of: Omit<Schemas['RotatedKey'], 'token'>;
  readonly predecessor: string;
  readonly onClose: () => void;
};

function Afterwards({ of: { predecessorEndsAt, sitesLeftBehind }, predecessor, onClose }: AfterProps) {
  return (
    <Modal opened title="Put the new key to use" onClose={onClose}>
      <div className={common['stack']}>
        <Text size="sm">
          Put the new value where <bdi className="wrap">{predecessor}</bdi> is used. The old key expires five
          minutes after the new one is first used, at the latest on {exactly(Date.parse(predecessorEndsAt))}.
        </Text>
        {sitesLeftBehind.length > 0 && (
          <Alert color="yellow" title="These sites stay with the old key">
            <ul className={common['list']}>
              {sitesLeftBehind.map(({ id, name }) => (
                <li key={id} className="wrap">
                  <bdi>{name}</bdi> <code>{id}</code>
                </li>
              ))}
            </ul>
          </Alert>
        )}
        <Group justify="flex-end">
          <Button onClick={onClose}>Done</Button>
        </Group>
      </div>
    </Modal>
  );
}
