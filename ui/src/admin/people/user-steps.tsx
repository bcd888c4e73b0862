import { Text } from '@mantine/core';
import { call } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Confirm, Dialog } from '../act.tsx';
import common from '../admin.module.css';

/** What can be done to an account, each with what follows from it. */
export type Step = 'disable' | 'enable' | 'sign-out' | 'reset' | 'delete';

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
      'Every session ends at once, and nobody can sign in to it.',
      'All its keys are suspended: refused until the account is enabled again, then good as before.',
      'Nobody opens its private sites. Its public sites go on being served; take them down one by one if they must go.',
    ],
  },
  enable: {
    title: 'Enable this account?',
    confirm: 'Enable now',
    keep: 'Leave it disabled',
    said: 'The account is enabled.',
    follows: ['Signing in works again, and so do its keys that are neither revoked nor expired.'],
    isHarmless: true,
  },
  'sign-out': {
    title: 'Sign out everywhere?',
    confirm: 'Sign out now',
    keep: 'Not now',
    said: 'The account is signed out everywhere.',
    follows: [
      'Every browser session ends, and every connected client loses its access.',
      'Keys go on working: revoke them at “User keys”.',
      'Site grants of browsers end by themselves within five minutes.',
    ],
  },
  reset: {
    title: 'Reset the password?',
    confirm: 'Make a new password',
    keep: 'Not now',
    said: 'The account has a new password.',
    follows: [
      'A new password is made up and shown to you once.',
      'The old one stops, and the account is signed out everywhere.',
    ],
  },
  delete: {
    title: 'Delete this account?',
    confirm: 'Delete for good',
    keep: 'Keep it',
    said: 'The account is deleted.',
    follows: [
      'This cannot be undone. A new account with the same address is somebody else.',
      'Sessions and connected clients end at once; all its keys are revoked.',
      'Its sites stay until they expire and pass to nobody. Nobody opens the private ones.',
    ],
  },
};

type StepProps = {
  readonly step: Step | undefined;
  readonly of: Schemas['User'];
  readonly onClose: () => void;
  readonly onDone: (step: Step) => void | Promise<void>;
  readonly onPassword: (password: string) => void;
};

export function UserStep({ step, of: user, onClose, onDone, onPassword }: StepProps) {
  const params = { id: user.id };
  async function act(): Promise<void> {
    if (step === 'disable' || step === 'enable')
      await call('PATCH /users/{id}', { params, body: { enabled: step === 'enable' } });
    if (step === 'sign-out') await call('POST /users/{id}/sign-out', { params });
    if (step === 'delete') await call('DELETE /users/{id}', { params });
    if (step !== 'reset') return;
    const { data } = await call('POST /users/{id}/reset-password', { params, body: {} });
    onPassword(data.generatedPassword ?? '');
  }
  const said = step === undefined ? undefined : words[step];
  return (
    <Dialog isOpen={step !== undefined} title={said?.title ?? ''} onClose={onClose}>
      {step !== undefined && said !== undefined && (
        <Confirm
          act={act}
          said={said.said}
          refresh="users"
          confirm={said.confirm}
          keep={said.keep}
          {...(step === 'delete' ? { typed: user.name } : {})}
          isHarmless={said.isHarmless === true}
          onClose={onClose}
          onDone={() => onDone(step)}
        >
          <Text size="sm">
            <b className={common['wrap']}>
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
    </Dialog>
  );
}
