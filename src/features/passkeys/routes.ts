import { z } from 'zod';
import type { RoutePolicy } from '../../core/authorize.ts';
import type { Caller } from '../../core/caller.ts';
import { timestamp, timestampOrNull } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { idParams, plainText, timestampSchema } from '../../platform/schemas.ts';
import { maxPasskeys, type Passkeys } from './passkeys.ts';
import type { Passkey } from './passkey-store.ts';
import { codesAtOnce, type RecoveryCodes } from './recovery-codes.ts';
import { registrationSchema } from './webauthn.ts';

const reading: RoutePolicy = { callers: ['session'], identity: 'live' };
/** A stolen session must not create itself a way back, or remove the person's. */
const changing: RoutePolicy = { callers: ['session'], identity: 'introspected', freshProof: 'always' };

const passkeySchema = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    createdAt: timestampSchema,
    lastUsedAt: timestampSchema.nullable(),
    isSynced: z
      .boolean()
      .describe('Whether the authenticator keeps a copy elsewhere, such as in the account of its maker'),
  })
  .meta({ id: 'Passkey' });

/** `PublicKeyCredentialCreationOptionsJSON` of WebAuthn Level 3. */
const optionsSchema = z.looseObject({ challenge: z.string() }).meta({ id: 'PasskeyOptions' });

const example = {
  id: 'psk_Kp3s9QeR1tYv5Uw7Xz0A',
  name: 'Ada’s laptop',
  createdAt: '2026-01-01T09:00:00.000Z',
  lastUsedAt: '2026-01-02T09:00:00.000Z',
  isSynced: true,
};

const params = idParams('The passkey’s id, as in lists', example.id);
const name = plainText(100);

/** The routes of a person's own passkeys. With Keycloak they answer 409 `state_conflict`. */
export function passkeyRoutes({
  passkeys,
  recoveryCodes,
}: {
  passkeys: Passkeys;
  recoveryCodes: Pick<RecoveryCodes, 'create'>;
}): Route[] {
  const tag = 'Passkeys';
  return [
    defineRoute({
      method: 'GET',
      path: '/me/passkeys',
      operationId: 'listMyPasskeys',
      tag,
      summary: 'List my passkeys',
      description: `At most ${maxPasskeys}, the oldest first.`,
      policy: reading,
      success: { status: 200, data: passkeySchema.array() },
      errors: ['state_conflict'],
      example: { data: [example] },
      handle: async ({ caller }) => ({
        data: (await passkeys.list(ownerOf(caller).subject)).map(toPasskey),
      }),
    }),
    defineRoute({
      method: 'POST',
      path: '/me/passkeys/options',
      operationId: 'beginMyPasskey',
      tag,
      summary: 'Begin to create a passkey',
      description:
        'Returns what `navigator.credentials.create()` needs. The answer of the browser is accepted once, within five minutes, in this session.',
      policy: changing,
      success: { status: 200, data: optionsSchema },
      errors: ['state_conflict'],
      example: { data: { challenge: '…', rp: { id: 'postern.example.com', name: 'Postern' } } },
      async handle({ caller }) {
        const { sessionId, ...owner } = ownerOf(caller);
        return { data: { ...(await passkeys.beginRegistration(owner, `session:${sessionId}`)) } };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/me/passkeys',
      operationId: 'createMyPasskey',
      tag,
      summary: 'Create a passkey',
      description:
        'Stores the passkey that the browser created. Send the result of `toJSON()` as `response`.',
      policy: changing,
      body: z.strictObject({ name, response: registrationSchema }).meta({ id: 'PasskeyInput' }),
      fieldCodes: { name: 'invalid_name', response: 'invalid_passkey' },
      success: { status: 201, data: passkeySchema },
      errors: ['invalid_passkey', 'quota_exceeded', 'state_conflict'],
      example: { data: example },
      async handle({ auditContext, caller, body }) {
        const { sessionId, ...owner } = ownerOf(caller);
        return {
          data: toPasskey(await passkeys.register(auditContext, owner, `session:${sessionId}`, body)),
        };
      },
    }),
    defineRoute({
      method: 'PATCH',
      path: '/me/passkeys/{id}',
      operationId: 'renameMyPasskey',
      tag,
      summary: 'Rename a passkey',
      policy: changing,
      params,
      body: z.strictObject({ name }),
      fieldCodes: { name: 'invalid_name' },
      success: { status: 200, data: passkeySchema },
      errors: ['not_found', 'state_conflict'],
      example: { body: { name: 'Work laptop' }, data: { ...example, name: 'Work laptop' } },
      handle: async ({ auditContext, caller, params: { id }, body }) => ({
        data: toPasskey(await passkeys.rename(auditContext, ownerOf(caller), id, body.name)),
      }),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/me/passkeys/{id}',
      operationId: 'removeMyPasskey',
      tag,
      summary: 'Remove a passkey',
      description:
        'It no longer signs in. The sessions that it began stay. The last one stays while your account must have a second factor.',
      policy: changing,
      params,
      success: { status: 200, data: z.strictObject({ id: z.string() }) },
      errors: ['not_found', 'state_conflict'],
      example: { data: { id: example.id } },
      async handle({ auditContext, caller, params: { id } }) {
        await passkeys.remove(auditContext, ownerOf(caller), id);
        return { data: { id } };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/me/recovery-codes',
      operationId: 'createMyRecoveryCodes',
      tag,
      summary: 'Create recovery codes',
      description:
        'Each code replaces a passkey once, after the password. The response has the codes, and no later one has. The earlier codes stop working.',
      policy: changing,
      success: { status: 200, data: z.strictObject({ codes: z.array(z.string()).length(codesAtOnce) }) },
      errors: ['state_conflict'],
      example: { data: { codes: Array<string>(codesAtOnce).fill('XXXX-XXXX-XXXX-XXXX') } },
      async handle({ auditContext, caller }) {
        return { data: { codes: await recoveryCodes.create(auditContext, ownerOf(caller)) } };
      },
    }),
  ];
}

function ownerOf(caller: Caller): { userId: string; subject: string; sessionId: string } {
  // The policy allows only sessions. This check informs the compiler, and fails closed if the policy changes.
  if (caller.kind !== 'session') throw new AppError('interactive_auth_required');
  return { userId: caller.user.id, subject: caller.user.subject, sessionId: caller.sessionId };
}

function toPasskey({ createdAt, lastUsedAt, ...passkey }: Passkey) {
  return { ...passkey, createdAt: timestamp(createdAt), lastUsedAt: timestampOrNull(lastUsedAt) };
}
