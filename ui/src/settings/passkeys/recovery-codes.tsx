import { Alert, Button, Checkbox, Group, Modal, Stack, Text, Textarea, Title } from '@mantine/core';
import { useRef, useState } from 'react';
import { api, dataOf } from '../../api/client.ts';
import { Confirm } from '../../shell/confirm.tsx';
import { copyFrom } from '../../shell/copy.ts';
import { FreshSignIn } from '../../shell/fresh-sign-in.tsx';
import { CopyIcon } from '../../shell/icons.tsx';

/** Creates codes that replace a passkey after the password. Postern shows them once. */
export function RecoveryCodes() {
  const [isAsking, setAsking] = useState(false);
  const [codes, setCodes] = useState<readonly string[]>([]);
  return (
    <section aria-labelledby="recovery-codes">
      <Title order={2} size="h4" id="recovery-codes" mt="xl" mb="xs">
        Recovery codes
      </Title>
      <Text size="sm" mb="sm">
        Each code replaces a passkey once, after your password. Keep them where you do not keep your passkeys.
      </Text>
      <Button variant="default" onClick={() => setAsking(true)}>
        Create recovery codes
      </Button>
      <Modal opened={isAsking} title="Create recovery codes?" onClose={() => setAsking(false)}>
        {isAsking && (
          <FreshSignIn>
            <Confirm
              act={async () => setCodes((await dataOf(api.POST('/me/recovery-codes'))).codes)}
              said="The recovery codes are created."
              refresh={['passkeys']}
              confirm="Create codes"
              keep="Not now"
              isHarmless
              onClose={() => setAsking(false)}
            >
              <Text size="sm">You get ten new codes. The codes that you created before stop working.</Text>
            </Confirm>
          </FreshSignIn>
        )}
      </Modal>
      <Modal
        opened={codes.length > 0}
        onClose={() => setCodes([])}
        closeOnEscape={false}
        closeOnClickOutside={false}
        withCloseButton={false}
        title="Store the codes now"
      >
        {codes.length > 0 && <Codes of={codes} onStored={() => setCodes([])} />}
      </Modal>
    </section>
  );
}

/** They are lost when the dialog closes. */
function Codes({ of: codes, onStored }: { of: readonly string[]; onStored: () => void }) {
  const [isStored, setStored] = useState(false);
  const [copied, setCopied] = useState('');
  const field = useRef<HTMLTextAreaElement>(null);

  async function copy(): Promise<void> {
    if (field.current === null) return;
    const isCopied = await copyFrom(field.current);
    setCopied(isCopied ? 'Copied.' : 'The text is selected: copy it with the keyboard.');
  }

  return (
    <Stack>
      <Alert color="yellow">
        The codes are shown only once. Print them, or store them in a password manager.
      </Alert>
      <Textarea
        ref={field}
        label="Recovery codes"
        readOnly
        rows={codes.length}
        spellCheck={false}
        autoComplete="off"
        data-autofocus
        classNames={{ input: 'mono' }}
        value={codes.join('\n')}
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
          label="I have stored them"
          checked={isStored}
          onChange={({ currentTarget }) => setStored(currentTarget.checked)}
        />
        <Button disabled={!isStored} onClick={onStored}>
          Done
        </Button>
      </Group>
    </Stack>
  );
}
