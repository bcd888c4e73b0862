import { permissionsPolicy } from './response-headers.ts';

/** A response without site content: small, and complete before it is sent. */
export type GatewayAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: string | null;
};

const plain = {
  'content-type': 'text/plain; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': permissionsPolicy,
} as const;

function plainAnswer(status: number, text: string, headers: Record<string, string> = {}): GatewayAnswer {
  return { status, headers: { ...plain, ...headers }, body: `${text}\n` };
}

/** The same response for what is missing, expired, taken down or switched off, so that clients cannot distinguish them (T31). */
export const nothingHere = plainAnswer(
  404,
  [
    'Not found',
    '',
    'Nothing is published at this address. The address may be mistyped, or the site may have moved or ended.',
    'If someone gave you the address, ask for the link of the site. The link stays the same when the address changes.',
  ].join('\n'),
);
/** No grant, and no person who could get one by signing in. */
export const noGrant: GatewayAnswer = { status: 401, headers: plain, body: null };
export const wrongHost = plainAnswer(421, 'This server does not serve this host.');
export const wrongMethod = plainAnswer(405, 'This host supports only GET and HEAD.', { allow: 'GET, HEAD' });
export const badTarget = plainAnswer(400, 'The address is not valid.');
export const badRequest = plainAnswer(400, 'Bad request');
export const tooLongTarget = plainAnswer(414, 'The address is too long.');
export const keyInRequest = plainAnswer(
  400,
  'The request sent an API key to a site. Treat the key as exposed: replace and revoke it. Send keys to the API host only.',
);
export const unavailable = plainAnswer(503, 'Try again in a moment.', { 'retry-after': '5' });
export const failed = plainAnswer(500, 'Something went wrong on the server.');

export function tooMany(seconds: number): GatewayAnswer {
  return plainAnswer(429, 'Too many requests.', { 'retry-after': String(Math.max(1, Math.ceil(seconds))) });
}
