import { Modal, Text } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Confirm } from '../../shell/confirm.tsx';
import common from '../admin.module.css';

/** Actions on an account, each with its consequences. */
export type Step = 'disable' | 'enable' | 'sign-out' | 'reset' | 'reset-passkeys' | 'delete';

type Words = {
  readonly title: string;
  readonly confirm: string;
  readonly keep: string;
  readonly said: string;
  readonly follows: readonly string[];
  readonly isHarmless?: true;
};

const words: Readonly<Record<Step, Words>> = {
  disable: {
    title: 'Disable this account?',
    confirm: 'Disable now',
    keep: 'Leave it enabled',
    said: 'The account is disabled.',
    follows: [
      'Every session ends immediately, and no one can sign in to it.',
      'All its keys are suspended. They are refused until the account is enabled again, and then work as before.',
      'No one can open its private sites. Its public sites are still served; take each one down to stop it.',
    ],
  },
  enable: {
    title: 'Enable this account?',
    confirm: 'Enable now',
    keep: 'Leave it disabled',
    said: 'The account is enabled.',
    follows: ['The user can sign in again. Keys that are neither revoked nor expired work again.'],
    isHarmless: true,
  },
  'sign-out': {
    title: 'Sign out everywhere?',
    confirm: 'Sign out now',
    keep: 'Not now',
    said: 'The account is signed out everywhere.',
    follows: [
      'Every browser session ends, and every connected client loses its access.',
      'Keys keep working. Revoke them at “User keys”.',
      'Browser grants for private sites expire within five minutes.',
    ],
  },
  reset: {
    title: 'Reset the password?',
    confirm: 'Generate a new password',
    keep: 'Not now',
    said: 'The account has a new password.',
    follows: [
      'Postern generates a new password and shows it to you once.',
      'The old password stops working, and the account is signed out everywhere.',
    ],
  },
  'reset-passkeys': {
    title: 'Reset the passkeys?',
    confirm: 'Remove all passkeys',
    keep: 'Not now',
    said: 'The passkeys are removed.',
    follows: [
      'All passkeys and recovery codes of the account are removed. The password stays.',
      'Every browser session ends, and every connected client loses its access.',
      'The user gets a notice, and can add new passkeys after a sign-in with the password.',
    ],
  },
  delete: {
    title: 'Delete this account?',
    confirm: 'Delete for good',
    keep: 'Keep it',
    said: 'The account is deleted.',
    follows: [
      'This cannot be undone. A new account with the same address is a different account.',
      'Sessions end and clients are disconnected immediately. All its keys are revoked.',
      'Its sites stay until they expire and pass to no one. No one can open the private ones.',
    ],
  },
};

type StepProps = {
  readonly step: Step | undefined;
  readonly of: Schemas['User'];
  readonly onClose: () => void;
  readonly onDone: () => void;
  readonly onPassword: (password: string) => void;
};

export function UserStep({ step, of: user, onClose, onDone, onPassword }: StepProps) {
  const navigate = useNavigate();
  const params = { path: { id: user.id } };
  async function act(): Promise<void> {
    if (step === 'disable' || step === 'enable')
      await unwrap(api.PATCH('/users/{id}', { params, body: { enabled: step === 'enable' } }));
    if (step === 'sign-out') await unwrap(api.POST('/users/{id}/sign-out', { params }));
    if (step === 'reset-passkeys') await unwrap(api.POST('/users/{id}/reset-passkeys', { params }));
    if (step === 'delete') {
      await unwrap(api.DELETE('/users/{id}', { params }));
      await navigate({ to: '/admin/users' });
    }
    if (step !== 'reset') return;
    const { data } = await unwrap(api.POST('/users/{id}/reset-password', { params, body: {} }));
    onPassword(data.generatedPassword ?? '');
  }
  const said = step === undefined ? undefined : words[step];
  return (
    <Modal opened={step !== undefined} title={said?.title ?? ''} onClose={onClose}>
      {step !== undefined && said !== undefined && (
        <Confirm
          act={act}
          said={said.said}
          refresh={['admin', 'users']}
          confirm={said.confirm}
          keep={said.keep}
          {...(step === 'delete' ? { typed: user.name } : {})}
          isHarmless={said.isHarmless === true}
          onClose={onClose}
          onDone={onDone}
        >
          <Text size="sm">
            <b className="wrap">
              <bdi>{user.name}</bdi>
            </b>
          </Text>
          <ul className={common['list']}>
            {said.follows.map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </Confirm>
      )}
    </Modal>
  );
}
