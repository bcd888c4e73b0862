import { Button, Group, Modal, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, unwrap } from '../api/client.ts';
import { Problem } from '../shell/problem.tsx';
import { useEnding } from '../shell/use-ending.ts';
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
      <Modal
        opened={isOpen}
        onClose={close}
        title="Revoke all your keys?"
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        {isOpen && <Question count={count} onClose={close} onRevoked={onRevoked} />}
      </Modal>
    </section>
  );
}

type QuestionProps = { count: number; onClose: () => void; onRevoked: () => void };

function Question({ count, onClose, onRevoked }: QuestionProps) {
  const [typed, setTyped] = useState('');
  const { run, error, isBusy } = useEnding({
    end: () => unwrap(api.POST('/me/tokens/revoke-all', { body: { confirm: word } })),
    said: 'All your keys are revoked.',
    list: 'keys',
    onClose,
    onDone: onRevoked,
  });
  const isSure = typed.trim().toLowerCase() === word;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isSure) run();
      }}
    >
      <Text size="sm" mb="sm">
        Every script that uses one of your {count} active {count === 1 ? 'key' : 'keys'} is refused
        immediately, everywhere. This cannot be undone. Your sites stay, and so do service keys and connected
        clients.
      </Text>
      <TextInput
        mb="sm"
        data-autofocus
        label={`Type “${word}” to confirm`}
        autoComplete="off"
        value={typed}
        onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      />
      {error !== undefined && <Problem error={error} />}
      <Group justify="flex-end" mt="md" gap="sm">
        <Button variant="default" onClick={onClose} disabled={isBusy}>
          Keep them
        </Button>
        <Button type="submit" color="red" loading={isBusy} disabled={!isSure}>
          Revoke all for good
        </Button>
      </Group>
    </form>
  );
}
