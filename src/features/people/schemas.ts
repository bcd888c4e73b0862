import { z } from 'zod';
import { idParams, pageQuery, plainText, timestampSchema } from '../../platform/schemas.ts';

/** Request and response shapes of people and their connected clients. */
export const roleSchema = z.enum(['user', 'admin']).meta({ id: 'Role' });

export const personIdParams = idParams('The person’s id, as in lists', 'usr_4fKq0Zb1Xw8TnLr2Vd6M');

export const personQuery = z.strictObject({ ...pageQuery, search: plainText(100).optional() });

export const personResponse = z
  .strictObject({
    id: z.string(),
    issuer: z.string().describe('The identity provider that the person came from'),
    subject: z
      .string()
      .describe('The subject there: `sub` in tokens, and `owner` in a file of `keys import`'),
    name: z.string().describe('As the provider last reported it'),
    email: z.string().nullable().describe('As the provider last reported it'),
    firstSeenAt: timestampSchema,
    lastLoginAt: timestampSchema.nullable(),
  })
  .meta({ id: 'KnownPerson' });

export const personAccountResponse = z
  .strictObject({
    state: z
      .enum(['active', 'disabled', 'missing'])
      .describe('`missing`: the identity provider of this installation has no account with this subject'),
    roles: z.array(roleSchema).describe('Assigned directly and by groups; none unless active'),
  })
  .meta({ id: 'KnownPersonAccount' });

export const ownClientIdParams = idParams('The client’s id, as in lists', 'postern-cli');

export const clientResponse = z
  .strictObject({
    clientId: z.string(),
    name: z.string(),
    since: timestampSchema,
    lastUsedAt: timestampSchema.nullable(),
    scopes: z.array(z.string()),
  })
  .meta({ id: 'ConnectedClient' });

export const clientOwnerParams = idParams('The account’s id, as in lists', 'usr_4fKq0Zb1Xw8TnLr2Vd6M');

export const clientParams = clientOwnerParams.extend({
  clientId: z.string().meta({ description: 'The client’s id, as in lists', examples: ['postern-cli'] }),
});

export const clientIdResponse = z.strictObject({ clientId: z.string() });
