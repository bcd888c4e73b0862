import { Alert, Button, Group, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, dataOf, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { browserWords } from '../../shell/browser-words.ts';
import { Problem } from '../../shell/problem.tsx';
import { useChange } from '../../shell/use-change.ts';

/** Asks the browser to create a passkey, and stores it under a name. */
export function AddPasskey({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState(() => browserWords(navigator.userAgent));
  const { run, error, isBusy } = useChange({
    async act() {
      const options = await dataOf(api.POST('/me/passkeys/options'));
      const response = await create(options);
      await unwrap(api.POST('/me/passkeys', { body: { name: name.trim(), response } }));
    },
    said: 'The passkey is created.',
    refresh: ['passkeys'],
    onClose,
  });
  if (!('PublicKeyCredential' in window))
    return <Text size="sm">This browser has no passkeys. Use a current one.</Text>;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        run();
      }}
    >
      <TextInput
        label="Name"
        description="To recognize it later, such as the device that keeps it."
        data-autofocus
        required
        maxLength={100}
        autoComplete="off"
        value={name}
        onChange={({ currentTarget }) => setName(currentTarget.value)}
      />
      {error instanceof DOMException && (
        <Alert color="yellow" mt="sm" title="No passkey was created" role="alert">
          {error.name === 'InvalidStateError'
            ? 'This device already has a passkey for your account.'
            : 'The browser stopped. Try again, or use another device.'}
        </Alert>
      )}
      {error !== undefined && !(error instanceof DOMException) && <Problem error={error} />}
      <Group justify="flex-end" mt="md" gap="sm">
        <Button variant="default" onClick={onClose} disabled={isBusy}>
          Not now
        </Button>
        <Button type="submit" loading={isBusy} disabled={name.trim() === ''}>
          Create the passkey
        </Button>
      </Group>
    </form>
  );
}

/** @throws DOMException when the browser or the person stops */
async function create(options: Schemas['PasskeyOptions']): Promise<Schemas['PasskeyRegistration']> {
  // The server sends the form that the browser reads (WebAuthn Level 3 section 5.1.8).
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(
    options as unknown as PublicKeyCredentialCreationOptionsJSON,
  );
  const credential = await navigator.credentials.create({ publicKey });
  if (!(credential instanceof PublicKeyCredential)) throw new DOMException('', 'NotAllowedError');
  // The server checks every field.
  return credential.toJSON() as unknown as Schemas['PasskeyRegistration'];
}
