import { z } from 'zod';

/** The issuers whose ID tokens the key policy lets keys trust, `federation.issuers`. */
export const presets = ['github', 'gitlab', 'kubernetes', 'other'] as const;

/** The platform of an issuer. It decides which claims a rule must name. */
export type Preset = (typeof presets)[number];

const base64url = (min: number, max: number) =>
  z
    .string()
    .min(min)
    .max(max)
    .regex(/^[\w-]+$/, 'must be base64url without padding');

/** Members of a JWK that only a private or a symmetric key has (RFC 7518 section 6). */
const secretMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'] as const;

/** A public key that verifies ID tokens (RFC 7517). Further members, such as certificates, have no effect. */
export const signingKeySchema = z
  .looseObject({
    kty: z.enum(['RSA', 'EC', 'OKP']),
    kid: z.string().min(1).max(200),
    use: z.literal('sig').optional(),
    alg: z.enum(['RS256', 'PS256', 'ES256', 'EdDSA']).optional(),
    crv: z.enum(['P-256', 'Ed25519']).optional(),
    // 2048 bits are 342 characters, 8192 bits are 1366.
    n: base64url(342, 1_366).optional(),
    e: base64url(2, 8).optional(),
    x: base64url(43, 43).optional(),
    y: base64url(43, 43).optional(),
  })
  .superRefine((key, issues) => {
    const add = (field: string, message: string) =>
      issues.addIssue({ code: 'custom', path: [field], message });
    for (const field of secretMembers)
      if (Object.hasOwn(key, field)) add(field, 'is secret; send only the public key, without it');
    const needed = { RSA: ['n', 'e'], EC: ['crv', 'x', 'y'], OKP: ['crv', 'x'] } as const;
    for (const field of needed[key.kty])
      if (key[field] === undefined) add(field, `is required for the key type ${key.kty}`);
    if (key.crv !== undefined && (key.kty === 'EC') !== (key.crv === 'P-256'))
      add('crv', 'must be P-256 for EC, and Ed25519 for OKP');
  })
  .meta({ id: 'SigningKey' });

export type SigningKey = z.infer<typeof signingKeySchema>;

/** Enough for every key of a set, and little enough for twenty of them in one document. */
const maxKeySetCharacters = 16_384;

const issuerSchema = z
  .strictObject({
    url: z
      .string()
      .max(300)
      .refine(isIssuerUrl, 'must be an https address without user, query and fragment, as in the claim iss')
      .describe('Equal to the claim `iss`, character by character'),
    preset: z.enum(presets).describe('The platform: it decides which claims a rule must name'),
    jwks: z
      .strictObject({
        keys: z
          .array(signingKeySchema)
          .min(1)
          .max(20)
          .refine(
            (keys) => new Set(keys.map(({ kid }) => kid)).size === keys.length,
            'must not repeat a kid',
          ),
      })
      .refine(
        (jwks) => JSON.stringify(jwks).length <= maxKeySetCharacters,
        `must be at most ${maxKeySetCharacters} characters`,
      )
      .optional()
      .describe('The public keys of the issuer. With them, Postern fetches none'),
  })
  .meta({ id: 'TrustedIssuer' });

export type TrustedIssuer = z.infer<typeof issuerSchema>;

export const issuerList = z
  .array(issuerSchema)
  .max(20)
  .refine(
    (issuers) => new Set(issuers.map(({ url }) => url)).size === issuers.length,
    'must not repeat an issuer',
  );

/** An issuer that only a newer release accepts is left out. That can only reduce what keys may trust. */
export const storedIssuerList = z
  .array(z.unknown())
  .transform((issuers) => issuers.filter((one) => issuerSchema.safeParse(one).success))
  .pipe(issuerList);

/** One spelling for each issuer: the one that a URL parser writes, with or without the slash of an empty path. */
function isIssuerUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.protocol !== 'https:') return false;
  const isBare = url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  return isBare && (url.href === text || url.href === `${text}/`) && !/[?#]/.test(text);
}
