import { Button, Modal, PasswordInput, Text, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import { Confirm } from '../../shell/confirm.tsx';
import { useChange } from '../../shell/use-change.ts';
import common from '../admin.module.css';
import { DialogForm } from '../dialog-form.tsx';
import { wrongIn } from '../wrong-in.ts';
import { paramsOf } from './repository-form.tsx';
import { FreshSignIn } from '../../shell/fresh-sign-in.tsx';

type Repository = Schemas['Repository'];

const kinds = { token: 'A token', ssh_key: 'A private key' } as const;

/** How Postern signs in to the git server. The value is never shown again, so it can only be replaced or removed. */
export function GitCredential({ of: repository }: { of: Repository }) {
  const [step, setStep] = useState<'set' | 'remove'>();
  const now = useNow();
  const { credential } = repository;
  const close = () => setStep(undefined);
  return (
    <section className={common['card']} aria-labelledby="credential">
      <div className={common['head']}>
        <h2 id="credential">Credential for the git server</h2>
      </div>
      <Text size="sm" mb="sm">
        {credential === null ? (
          'None. Postern can read this repository only if it is public.'
        ) : (
          <>
            {kinds[credential.kind]}, set <Moment at={credential.setAt} now={now} />. Postern sends it to the
            host of the clone URL only.
          </>
        )}
      </Text>
      <div className={common['buttons']}>
        <Button variant="default" onClick={() => setStep('set')}>
          {credential === null ? 'Set a credential' : 'Replace'}
        </Button>
        {credential !== null && (
          <Button variant="default" onClick={() => setStep('remove')}>
            Remove
          </Button>
        )}
      </div>
      <Modal
        opened={step === 'set'}
        title={credential === null ? 'Set a credential' : 'Replace the credential'}
        onClose={close}
      >
        {step === 'set' && <CredentialForm of={repository} onClose={close} />}
      </Modal>
      <Modal opened={step === 'remove'} title="Remove the credential?" onClose={close}>
        {step === 'remove' && (
          <Confirm
            act={() =>
              unwrap(
                api.DELETE('/repositories/{owner}/{name}/credential', {
                  params: { path: paramsOf(repository.fullName) },
                }),
              )
            }
            said="The credential is removed."
            refresh={['admin', 'repositories']}
            confirm="Remove the credential"
            keep="Keep it"
            onClose={close}
          >
            <Text size="sm">
              Postern can then read the repository only if it is public. The token or key stays valid at the
              git server until you revoke it there.
            </Text>
          </Confirm>
        )}
      </Modal>
    </section>
  );
}

function CredentialForm({ of: { fullName, cloneUrl }, onClose }: { of: Repository; onClose: () => void }) {
  const needsToken = cloneUrl.startsWith('https:');
  const [token, setToken] = useState('');
  const [user, setUser] = useState('');
  const [privateKey, setPrivateKey] = useState('');
  const [knownHosts, setKnownHosts] = useState('');
  const body = needsToken
    ? { token: token.trim(), ...(user.trim() === '' ? {} : { user: user.trim() }) }
    : { privateKey, knownHosts };
  const { run, error, isBusy } = useChange({
    act: () =>
      unwrap(
        api.PUT('/repositories/{owner}/{name}/credential', { params: { path: paramsOf(fullName) }, body }),
      ),
    said: 'The credential is stored.',
    refresh: ['admin', 'repositories'],
    onClose,
  });
  const wrong = wrongIn(error, needsToken ? 'token' : 'privateKey');
  return (
    <FreshSignIn>
      <DialogForm send="Store the credential" isBusy={isBusy} onSend={run} onClose={onClose}>
        {needsToken ? (
          <>
            <PasswordInput
              label="Token"
              description="An access token of the git server that may read this repository, and nothing more."
              data-autofocus
              required
              autoComplete="new-password"
              value={token}
              error={wrong['token']}
              onChange={({ currentTarget }) => setToken(currentTarget.value)}
            />
            <TextInput
              label="User name"
              description="Only if the git server expects a certain one beside the token."
              placeholder="git"
              autoComplete="off"
              value={user}
              error={wrong['user']}
              onChange={({ currentTarget }) => setUser(currentTarget.value)}
            />
          </>
        ) : (
          <>
            <Textarea
              label="Private key"
              description="A deploy key without a passphrase that may read this repository, and nothing more."
              placeholder="-----BEGIN OPENSSH PRIVATE KEY-----"
              data-autofocus
              required
              rows={5}
              autoComplete="off"
              spellCheck={false}
              value={privateKey}
              error={wrong['privateKey']}
              onChange={({ currentTarget }) => setPrivateKey(currentTarget.value)}
            />
            <Textarea
              label="Host keys of the git server"
              description="The output of ssh-keyscan for its host. Compare it with what the git server publishes."
              required
              rows={3}
              autoComplete="off"
              spellCheck={false}
              value={knownHosts}
              error={wrong['knownHosts']}
              onChange={({ currentTarget }) => setKnownHosts(currentTarget.value)}
            />
          </>
        )}
        {error !== undefined && Object.keys(wrong).length === 0 && <Problem error={error} />}
      </DialogForm>
    </FreshSignIn>
  );
}
