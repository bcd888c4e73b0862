import { Button, Modal, Text } from '@mantine/core';
import { useState } from 'react';
import { api, unwrap } from '../api/client.ts';
import { Confirm } from '../shell/confirm.tsx';
import styles from './keys-page.module.css';

const word = 'revoke all';

/** For a leak of an unknown key. */
export function RevokeAll({ count, onRevoked }: { count: number; onRevoked: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <section className={styles['leak']} aria-label="After a leak">
      <p>
        <b>Did something leak?</b> If you know which key, revoke that one. If you do not, revoke all your keys
        at once.
      </p>
      <Button color="red" variant="light" onClick={() => setOpen(true)}>
        Revoke all my keys
      </Button>
      <Modal opened={isOpen} onClose={close} title="Revoke all your keys?">
        <Confirm
          act={() => unwrap(api.POST('/me/tokens/revoke-all', { body: { confirm: word } }))}
          said="All your keys are revoked."
          refresh={['keys']}
          confirm="Revoke all for good"
          keep="Keep them"
          typed={word}
          typedLabel={`Type “${word}” to confirm`}
          onClose={close}
          onDone={onRevoked}
        >
          <Text size="sm">
            Every script that uses one of your {count} active {count === 1 ? 'key' : 'keys'} is refused
            immediately, everywhere. This cannot be undone. Your sites stay, and so do service keys and
            connected clients.
          </Text>
        </Confirm>
      </Modal>
    </section>
  );
}
