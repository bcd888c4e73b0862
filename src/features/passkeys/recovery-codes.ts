import type { AuditContext, RequestOrigin } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import { type Random, randomFrom } from '../../core/ids.ts';
import type { Tx } from '../../platform/database/database.ts';
import { secretDigest } from '../../platform/encrypted-text.ts';
import type { Attempt } from '../../platform/throttle.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { NoticeWriter } from '../notices/notices.ts';
import type { RecoveryCodeStore } from './recovery-code-store.ts';
import { noPasskeysHere, type RelyingParty } from './webauthn.ts';

/** Codes that replace a passkey after the password, once each. Postern keeps only their SHA-256. */
export type RecoveryCodes = {
  /** Ends the earlier codes. @throws `state_conflict` where browsers have no passkeys */
  create(auditContext: AuditContext, person: Pick<CodeOwner, 'userId' | 'subject'>): Promise<string[]>;
  /** `account`: the account whose password was right. */
  use(account: CodeOwner, typed: string, origin: RequestOrigin): Promise<CodeAnswer>;
};

export type CodeOwner = {
  readonly userId: string;
  readonly subject: string;
  readonly email: string;
  readonly name: string;
};

export type CodeAnswer =
  | { readonly kind: 'right' }
  | { readonly kind: 'wrong' }
  | { readonly kind: 'throttled'; readonly retryAfterSeconds: number };

export const codesAtOnce = 10;

/** Crockford's base32 without I, L, O and U: 5 bits for each of 16 characters. */
const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const codeLength = 16;
const codeForm = new RegExp(`^[${alphabet}]{${codeLength}}$`);

/** What a person typed, without the spaces and dashes of its groups. Undefined: not a code. */
export function codeIn(typed: string): string | undefined {
  const code = typed
    .toUpperCase()
    .replaceAll(/[\s\p{Pd}]/gu, '')
    .replaceAll('O', '0')
    .replaceAll(/[IL]/g, '1');
  return codeForm.test(code) ? code : undefined;
}

const inGroups = (code: string) => code.match(/.{4}/g)?.join('-') ?? code;

export type RecoveryCodesDeps = {
  /** Null: browsers have no passkeys at the address of the web app. */
  readonly party: RelyingParty | null;
  readonly tx: Tx<{
    readonly recoveryCodes: RecoveryCodeStore;
    readonly accounts: {
      findByUserId(userId: string, options: { forUpdate: boolean }): Promise<object | undefined>;
    };
    readonly audit: AuditWriter;
    readonly notices: NoticeWriter;
  }>;
  readonly throttle: { attemptCode(account: string, address: string | null): Attempt };
  readonly random: Random;
  /** Counts refusals for the audit log; must not block. */
  readonly refused: (
    reason: 'wrong_recovery_code' | 'throttled',
    origin: RequestOrigin,
    userId: string,
  ) => void;
};

export function createRecoveryCodes({
  party,
  tx,
  throttle,
  random,
  refused,
}: RecoveryCodesDeps): RecoveryCodes {
  /** Uses up the code. */
  function spend(
    { userId, subject, name }: CodeOwner,
    code: string,
    origin: RequestOrigin,
  ): Promise<boolean> {
    const digest = secretDigest(code);
    return tx(async ({ recoveryCodes, audit, notices }) => {
      if (!(await recoveryCodes.use(subject, digest))) return false;
      const codesLeft = await recoveryCodes.countUnused(subject);
      await audit.append({
        event: 'user.recovery_code_used',
        auditContext: { actor: { kind: 'user', id: userId, name, credential: null }, origin },
        target: { kind: 'user', id: userId },
        outcome: 'success',
        details: { codesLeft },
      });
      await notices.add({
        recipient: { kind: 'user', userId },
        kind: 'recovery_code_used',
        userId,
        occasion: digest,
        fields: { codesLeft },
      });
      return true;
    });
  }

  return {
    async create(auditContext, { userId, subject }) {
      if (party === null) throw new AppError('state_conflict', noPasskeysHere);
      const codes = Array.from({ length: codesAtOnce }, () => randomFrom(random, alphabet, codeLength));
      await tx(async ({ accounts, recoveryCodes, audit }) => {
        // Locks the account, so that the codes of one of two parallel requests end.
        if ((await accounts.findByUserId(userId, { forUpdate: true })) === undefined)
          throw new AppError('not_found');
        await recoveryCodes.replaceAll(subject, codes.map(secretDigest));
        await audit.append({
          event: 'user.recovery_codes_created',
          auditContext,
          target: { kind: 'user', id: userId },
          outcome: 'success',
        });
      });
      return codes.map(inGroups);
    },
    async use(account, typed, origin) {
      const attempt = throttle.attemptCode(account.email, origin.address);
      if (attempt.kind === 'refused') {
        refused('throttled', origin, account.userId);
        return { kind: 'throttled', retryAfterSeconds: attempt.retryAfterSeconds };
      }
      const code = codeIn(typed);
      if (code === undefined || !(await spend(account, code, origin))) {
        refused('wrong_recovery_code', origin, account.userId);
        return { kind: 'wrong' };
      }
      attempt.succeed();
      return { kind: 'right' };
    },
  };
}

/** Another provider has its own ways to recover an account. */
export function externalRecoveryCodes(issuer: string): Pick<RecoveryCodes, 'create'> {
  return {
    create: () =>
      Promise.reject(
        new AppError('state_conflict', {
          message: 'The identity provider of this installation manages second factors.',
          hint: `Manage them there: ${issuer}`,
        }),
      ),
  };
}
