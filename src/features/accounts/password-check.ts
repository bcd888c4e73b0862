import type { RequestOrigin } from '../../core/caller.ts';
import type { AccountStore } from './account-store.ts';
import { maxPasswordLength, type Passwords } from './passwords.ts';
import type { KnownDevices } from './known-devices.ts';
import type { SignInThrottle } from './sign-in-throttle.ts';

/** The result of checking an e-mail and a password. An unknown account and a wrong password look alike and take the same time. */
export type PasswordAnswer =
  | { readonly kind: 'right'; readonly subject: string }
  | { readonly kind: 'wrong' }
  /** The password was correct; only then does the answer reveal the state of the account. */
  | { readonly kind: 'disabled' }
  | { readonly kind: 'throttled'; readonly retryAfterSeconds: number };

/** Where a sign-in comes from: the address, and the device cookie of a browser that signed in before (known-devices.ts). */
export type SignInOrigin = RequestOrigin & { readonly deviceCookie?: string | undefined };

export type SignInRefusal =
  | 'wrong_password'
  | 'account_disabled'
  | 'throttled'
  | 'passkey_refused'
  | 'wrong_recovery_code';

export type PasswordCheck = (
  email: string,
  password: string,
  origin: SignInOrigin,
) => Promise<PasswordAnswer>;

export function createPasswordCheck(deps: {
  accounts: Pick<AccountStore, 'findLogin'>;
  passwords: Passwords;
  throttle: SignInThrottle;
  devices: Pick<KnownDevices, 'recognise'>;
  /** Counts refusals for the audit log, with the account when one exists; must not block. */
  refused(reason: SignInRefusal, origin: RequestOrigin, userId: string | null): void;
}): PasswordCheck {
  const { accounts, passwords, throttle, devices } = deps;
  return async (email, password, { deviceCookie, ...origin }) => {
    const attempt = throttle.attempt(email, origin.address, devices.recognise(email, deviceCookie));
    if (attempt.kind === 'refused') {
      deps.refused('throttled', origin, null);
      return { kind: 'throttled', retryAfterSeconds: attempt.retryAfterSeconds };
    }
    const login = await accounts.findLogin(email);
    const isRight = await passwords.verify(
      login?.passwordHash ?? null,
      password.slice(0, maxPasswordLength + 1),
    );
    if (login === undefined || !isRight) {
      deps.refused('wrong_password', origin, login?.userId ?? null);
      return { kind: 'wrong' };
    }
    attempt.succeed();
    if (!login.isEnabled) {
      deps.refused('account_disabled', origin, login.userId);
      return { kind: 'disabled' };
    }
    return { kind: 'right', subject: login.subject };
  };
}
