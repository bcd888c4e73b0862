import { Alert, Button, Checkbox, Group, Modal, TextInput } from '@mantine/core';
import { useRef, useState } from 'react';
import { copyFrom } from '../../shell/copy.ts';
import { CopyIcon } from '../../shell/icons.tsx';
import common from '../admin.module.css';

export type NewPassword = { readonly name: string; readonly password: string };

/** A generated password, shown once. It is lost when the dialog closes. */
export function ShownOnce({ of: shown, onStored }: { of: NewPassword | undefined; onStored: () => void }) {
  return (
    <Modal
      opened={shown !== undefined}
      onClose={onStored}
      closeOnEscape={false}
      closeOnClickOutside={false}
      withCloseButton={false}
      title="Hand over the password now"
    >
      {shown !== undefined && <Password of={shown} onStored={onStored} />}
    </Modal>
  );
}

function Password({ of: { name, password }, onStored }: { of: NewPassword; onStored: () => void }) {
  const [isStored, setStored] = useState(false);
  const [copied, setCopied] = useState('');
  const field = useRef<HTMLInputElement>(null);

  async function copy(): Promise<void> {
    if (field.current === null) return;
    const isCopied = await copyFrom(field.current);
    setCopied(isCopied ? 'Copied.' : 'The text is selected: copy it with the keyboard.');
  }

  return (
    <div className={common['stack']}>
      <Alert color="yellow">
        The password of <bdi className="wrap">{name}</bdi> is shown only once. Send it over a channel that no
        one else reads. Postern does not require a new password at the first sign-in. Ask the user to choose
        one with “Change password” in the account menu.
      </Alert>
      <TextInput
        ref={field}
        label="Password"
        readOnly
        spellCheck={false}
        autoComplete="off"
        data-autofocus
        classNames={{ input: 'mono' }}
        value={password}
        onFocus={({ currentTarget }) => currentTarget.select()}
      />
      <Group gap="sm">
        <Button leftSection={<CopyIcon />} onClick={() => void copy()}>
          Copy
        </Button>
        <span role="status" className="quiet">
          {copied}
        </span>
      </Group>
      <Group justify="space-between">
        <Checkbox
          label="I have handed it over"
          checked={isStored}
          onChange={({ currentTarget }) => setStored(currentTarget.checked)}
        />
        <Button disabled={!isStored} onClick={onStored}>
          Done
        </Button>
      </Group>
    </div>
  );
}
