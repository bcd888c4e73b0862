// Node's own argon2 computes the same hash, but takes 2.3 times the processor time (24.6 ms against 10.8 ms, Node 24.21),
// keeps its memory afterwards (82 MB against 3 MB for 8 at once), and neither writes nor reads the PHC string of a hash.
import { hash, verify } from '@node-rs/argon2';

/** argon2id cost. `memoryKib` and `passes` as in RFC 9106; OWASP's minimum is 19 MiB and two passes. */
export type PasswordCost = { readonly memoryKib: number; readonly passes: number };

export const productionCost: PasswordCost = { memoryKib: 19_456, passes: 2 };

/** Minimum length of a password; config/ applies the same minimum to BOOTSTRAP_ADMIN_PASSWORD. */
export const minPasswordLength = 12;
/** Maximum length: longer input only costs hashing time. */
export const maxPasswordLength = 200;

export type Passwords = {
  hash(password: string): Promise<string>;
  /** With null, verifies against a dummy hash, so that an unknown account takes as long as a wrong password. */
  verify(passwordHash: string | null, password: string): Promise<boolean>;
};

export function createPasswords(cost: PasswordCost): Passwords {
  const options = { memoryCost: cost.memoryKib, timeCost: cost.passes, parallelism: 1 };
  let standIn: Promise<string> | undefined;
  return {
    hash: (password) => hash(password, options),
    async verify(passwordHash, password) {
      standIn ??= hash('the stand-in for accounts that do not exist', options);
      const matches = await verify(passwordHash ?? (await standIn), password);
      return passwordHash !== null && matches;
    },
  };
}
