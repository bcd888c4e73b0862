import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import type { Exchanges } from './exchange.ts';

/** The route by which a pipeline gets a token (RFC 8693 section 2). */
const urn = 'urn:ietf:params:oauth';
const grantType = `${urn}:grant-type:token-exchange`;
const accessToken = `${urn}:token-type:access_token`;

const requestSchema = z
  .strictObject({
    grant_type: z.string().max(200).describe(`Always \`${grantType}\``),
    subject_token: z
      .string()
      .min(1)
      .describe('The ID token of the job, with SERVICE_UI_URL as its only audience'),
    subject_token_type: z.enum([`${urn}:token-type:id_token`, `${urn}:token-type:jwt`]),
    audience: z
      .string()
      .regex(/^[0-9A-Za-z]{12}$/, 'must be the id of a service key')
      .describe('The id of the service key'),
    requested_token_type: z.literal(accessToken).optional(),
  })
  .meta({ id: 'TokenExchange' });

const responseSchema = z
  .strictObject({
    access_token: z.string().describe('Send it as `Authorization: Bearer`, as a key'),
    issued_token_type: z.literal(accessToken),
    token_type: z.literal('Bearer'),
    expires_in: z.number().int().describe('Seconds'),
  })
  .meta({ id: 'ExchangedToken' });

export function exchangeRoute({ exchanges }: { exchanges: Exchanges }): Route {
  return defineRoute({
    method: 'POST',
    path: '/auth/exchange',
    operationId: 'exchangeIdToken',
    tag: 'Authentication',
    summary: 'Exchange the ID token of a pipeline for a token of a service key',
    description:
      'The token acts as the service key for at most 15 minutes. A trust rule of the key must accept the ID token. The body is a form, and response and errors have the shapes of OAuth (RFC 8693, RFC 6749), without the envelope of the other routes. `invalid_grant` never says why; an administrator finds the reason by `request_id`.',
    policy: { callers: 'anyone', identity: 'none' },
    exemptFromLimit: true,
    body: requestSchema,
    // An ID token can contain anything, by chance also the shape of a key. It is stored nowhere.
    looksForKeysIn: ['subject_token'],
    errors: ['invalid_credential', 'rate_limited'],
    success: { status: 200, oauth: responseSchema },
    example: {
      body: {
        grant_type: grantType,
        subject_token: 'eyJ••••••••',
        subject_token_type: `${urn}:token-type:id_token`,
        audience: '9sWm3RtY6bHc',
      },
      data: {
        access_token: 'app_fed_••••••••',
        issued_token_type: accessToken,
        token_type: 'Bearer',
        expires_in: 900,
      },
    },
    async handle({ body, origin }) {
      if (body.grant_type !== grantType)
        throw new AppError('invalid_body', {
          message: `grant_type: must be ${grantType}`,
          details: { oauth: 'unsupported_grant_type' },
        });
      const { value, seconds } = await exchanges.exchange(body.subject_token, body.audience, origin);
      return {
        data: {
          access_token: value,
          issued_token_type: accessToken,
          token_type: 'Bearer',
          expires_in: seconds,
        },
      };
    },
  });
}
