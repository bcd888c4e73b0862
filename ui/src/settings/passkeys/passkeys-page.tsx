import { Badge, Button, Modal, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { List } from '../../lists/list.tsx';
import styles from '../../lists/item-list.module.css';
import { PageHead } from '../../lists/page-head.tsx';
import { Confirm } from '../../shell/confirm.tsx';
import { focusIfLost } from '../../shell/focus.ts';
import { FreshSignIn } from '../../shell/fresh-sign-in.tsx';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { myPasskeys } from '../queries.ts';
import { AddPasskey } from './add-passkey.tsx';
import { RecoveryCodes } from './recovery-codes.tsx';

type Passkey = Schemas['Passkey'];

/** The passkeys with which the user can sign in. */
export function PasskeysPage() {
  const found = useQuery(myPasskeys);
  const [isAdding, setAdding] = useState(false);
  const [leaving, setLeaving] = useState<Passkey>();
  const heading = useRef<HTMLHeadingElement>(null);
  const now = useNow();
  return (
    <>
      <PageHead
        title="Passkeys"
        intro="Sign in with a fingerprint, a face, a PIN or a security key instead of a password."
        heading={heading}
      >
        <Button onClick={() => setAdding(true)}>Add a passkey</Button>
      </PageHead>
      <List what="passkeys" found={found} empty={<Text size="sm">You have no passkeys yet.</Text>}>
        {(passkeys) => (
          <ul className={styles['list']}>
            {passkeys.map((passkey) => (
              <li key={passkey.id}>
                <div>
                  <span className={styles['name']}>
                    <bdi>{passkey.name}</bdi> {passkey.isSynced && <Badge variant="light">Synced</Badge>}
                  </span>
                  <span className="quiet">
                    Created <Moment at={passkey.createdAt} now={now} /> ·{' '}
                    {passkey.lastUsedAt === null ? (
                      'never used'
                    ) : (
                      <>
                        used <Moment at={passkey.lastUsedAt} now={now} />
                      </>
                    )}
                  </span>
                </div>
                <Button
                  variant="default"
                  size="xs"
                  aria-label={`Remove ${passkey.name}`}
                  onClick={() => setLeaving(passkey)}
                >
                  Remove
                </Button>
              </li>
            ))}
          </ul>
        )}
      </List>
      <RecoveryCodes />
      <Modal opened={isAdding} title="Add a passkey" onClose={() => setAdding(false)}>
        {isAdding && (
          <FreshSignIn>
            <AddPasskey onClose={() => setAdding(false)} />
          </FreshSignIn>
        )}
      </Modal>
      <Modal
        opened={leaving !== undefined}
        title="Remove this passkey?"
        onClose={() => setLeaving(undefined)}
      >
        {leaving !== undefined && (
          <Confirm
            act={() => unwrap(api.DELETE('/me/passkeys/{id}', { params: { path: { id: leaving.id } } }))}
            said={`${leaving.name} is removed.`}
            refresh={['passkeys']}
            confirm="Remove it"
            keep="Keep it"
            onClose={() => setLeaving(undefined)}
            onDone={() => focusIfLost(heading.current)}
          >
            <Text size="sm">
              <b>
                <bdi>{leaving.name}</bdi>
              </b>{' '}
              can no longer sign in. Remove it in the settings of the device too.
            </Text>
          </Confirm>
        )}
      </Modal>
    </>
  );
}
