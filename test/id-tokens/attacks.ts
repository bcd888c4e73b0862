import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { acceptingRule, verifyIdToken } from '../../src/features/federation/id-token.ts';
import type { TrustRule } from '../../src/features/keys/keys.ts';
import {
  githubRule,
  githubUrl,
  gitlabRule,
  gitlabUrl,
  kubernetesRule,
  kubernetesUrl,
} from '../api/federation/platforms.ts';
import { openPlatform, type Platform } from './platforms.ts';

/** ID tokens that must not be accepted, from an attacker who has everything but the private keys of the issuers. */
export const audience = 'https://postern.example.com';
export const now = Date.UTC(2026, 0, 1, 9);

const plain = { maxTtlMinutes: 15, maxAgeMinutes: 10, singleUse: true };
const otherClaims = { project: 'shop', branch: 'main' };
const ecUrl = 'https://ec.example.com';
const edUrl = 'https://ed.example.com/a/b';

export const platforms: readonly Platform[] = [
  openPlatform('github', githubUrl),
  openPlatform('gitlab', gitlabUrl),
  openPlatform('kubernetes', kubernetesUrl),
  openPlatform('other', ecUrl, 'ES256'),
  openPlatform('other', edUrl, 'EdDSA'),
];
/** Has the same form, and is in no policy. */
const stranger = openPlatform('github', 'https://token.actions.githubusercontent.com.evil.example');
const attacker = {
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ec: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ed: generateKeyPairSync('ed25519'),
};

const rules: readonly TrustRule[] = [
  { ...plain, ...githubRule, id: 'rul_a' },
  { ...plain, ...gitlabRule, id: 'rul_b' },
  { ...plain, ...kubernetesRule, id: 'rul_c' },
  { ...plain, issuer: ecUrl, claims: otherClaims, id: 'rul_d' },
  { ...plain, issuer: edUrl, claims: otherClaims, id: 'rul_e' },
];

/** What an exchange would decide about the token, without the check for a replay. */
export async function verdict(token: string, at = now): Promise<string> {
  const found = await verifyIdToken(token, {
    issuers: platforms.map(({ issuer }) => issuer),
    async findKey({ url }, kid) {
      const of = platforms.find(({ issuer }) => issuer.url === url);
      return of?.kid === kid ? of.publicKey : undefined;
    },
    audience,
    now: at,
  });
  if (found.kind !== 'verified') return found.kind === 'refused' ? found.reason : found.kind;
  const ruled = acceptingRule(found, rules, at);
  return ruled.kind === 'accepted' ? 'accepted' : ruled.reason;
}

type Random = (below: number) => number;
type Attack = (victim: Platform, random: Random) => Promise<string> | string;

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const pick = <T>(random: Random, list: readonly T[]): T => list[random(list.length)] as T;
const genuine = (of: Platform) => of.claims(now, audience);
const attackersKey = (random: Random) => pick(random, Object.values(attacker));

function algorithmOf(key: KeyObject): string {
  const names = { rsa: 'RS256', ec: 'ES256', ed25519: 'EdDSA' } as const;
  return names[key.asymmetricKeyType as keyof typeof names];
}

/** Signed by the issuer itself, for a job that is not the one of the rule. */
const signed = (change: (claims: Record<string, unknown>, random: Random) => object): Attack => {
  return (victim, random) => victim.sign({ ...genuine(victim), ...change(genuine(victim), random) });
};

/** Signed by the attacker, with the header that should lead to the attacker's key. */
const forged = (header: (key: KeyObject, random: Random, victim: Platform) => object): Attack => {
  return (victim, random) => {
    const { privateKey, publicKey } = attackersKey(random);
    const alg = algorithmOf(privateKey);
    return victim.sign(genuine(victim), { alg, ...header(publicKey, random, victim) }, privateKey);
  };
};

const seconds = now / 1_000;
const texts = [
  '',
  ' ',
  '*',
  'x',
  'null',
  '0',
  'true',
  'main',
  'refs/heads/main ',
  'refs/heads/main\u0000',
  'REFS/HEADS/MAIN',
];
const values: readonly unknown[] = [...texts, 0, -1, 1.5, true, false, null, [], {}, ['22'], { value: '22' }];
const times: readonly unknown[] = [
  null,
  '',
  '9999999999',
  [],
  {},
  true,
  -1,
  0,
  1e300,
  -1e300,
  seconds - 3_700,
];

const attacks: Readonly<Record<string, Attack>> = {
  none(victim, random) {
    const alg = pick(random, ['none', 'None', 'NONE', 'nOnE', '', null, 0, ['RS256']]);
    const signature = pick(random, ['', 'AA', 'e30', Buffer.alloc(64).toString('base64url')]);
    return `${encode({ ...victim.header, alg })}.${encode(genuine(victim))}.${signature}`;
  },
  symmetric(victim, random) {
    const alg = pick(random, ['HS256', 'HS384', 'HS512', 'RS256', 'ES256']);
    const jwk = victim.publicKey as unknown as Record<string, string>;
    const key = createPublicKey({ key: jwk as never, format: 'jwk' });
    const secret = pick(random, [
      key.export({ type: 'spki', format: 'pem' }),
      key.export({ type: 'spki', format: 'der' }),
      JSON.stringify(jwk),
      Buffer.from(jwk['n'] ?? jwk['x'] ?? '', 'base64url'),
      '',
    ]);
    const text = `${encode({ ...victim.header, alg })}.${encode(genuine(victim))}`;
    const hash = alg.endsWith('384') ? 'sha384' : alg.endsWith('512') ? 'sha512' : 'sha256';
    return `${text}.${createHmac(hash, secret).update(text).digest('base64url')}`;
  },
  'key in the header': forged((key) => ({ jwk: key.export({ format: 'jwk' }) })),
  'address in the header': forged((_key, random) => ({
    [pick(random, ['jku', 'x5u'])]: pick(random, [
      'https://evil.example.com/jwks',
      `${githubUrl}@evil.example.com/jwks`,
      'file:///etc/passwd',
      'http://169.254.169.254/latest',
    ]),
  })),
  'certificate in the header': forged((key) => ({
    x5c: [key.export({ type: 'spki', format: 'der' }).toString('base64')],
    x5t: 'AAAA',
  })),
  'key id': forged((_key, random, victim) => ({
    kid: pick<unknown>(random, [
      '',
      `${victim.kid} `,
      victim.kid.toUpperCase(),
      '../../dev/null',
      "' or 1=1 --",
      '__proto__',
      'x'.repeat(5_000),
      null,
      0,
      [victim.kid],
      { $ne: '' },
      pick(random, platforms).kid,
    ]),
  })),
  'foreign key'(victim, random) {
    const other = pick(
      random,
      [...platforms, stranger].filter((one) => one !== victim),
    );
    const alg = algorithmOf(other.privateKey);
    const kid = pick(random, [victim.kid, other.kid]);
    return victim.sign(genuine(victim), { alg, kid }, other.privateKey);
  },
  'foreign issuer'(victim, random) {
    const { url } = victim.issuer;
    const iss = pick<unknown>(random, [
      `${url}/`,
      url.toUpperCase(),
      url.replace('https:', 'http:'),
      ` ${url}`,
      `${url}\u0000`,
      [url],
      { url },
      null,
      stranger.issuer.url,
      pick(
        random,
        platforms.filter((one) => one !== victim),
      ).issuer.url,
    ]);
    return victim.sign({ ...genuine(victim), iss });
  },
  'unknown issuer': () => stranger.sign(genuine(stranger)),
  audience: signed((_claims, random) => ({
    aud: pick<unknown>(random, [
      undefined,
      null,
      '',
      [],
      {},
      `${audience}/`,
      `${audience} `,
      audience.toUpperCase(),
      'https://github.com/octo-org',
      [audience, 'https://other.example.com'],
      ['https://other.example.com', audience],
      [[audience]],
      [audience, audience],
      { 0: audience, length: 1 },
    ]),
  })),
  'other repository': (victim, random) => {
    const rule = rules.find(({ issuer }) => issuer === victim.issuer.url);
    const claim = pick(random, Object.keys(rule?.claims ?? {}));
    const expected = rule?.claims[claim] ?? '';
    const value = pick<unknown>(random, [
      ...values.filter((one) => String(one) !== expected),
      `${expected}2`,
      expected.slice(0, -1),
      `${expected}/../x`,
      ` ${expected}`,
      [expected],
      { [expected]: expected },
      undefined,
    ]);
    const claims = genuine(victim);
    if (!claim.startsWith('/')) return victim.sign({ ...claims, [claim]: value });
    // The same text at the top, or at another place, does not count.
    const [, top = '', ...path] = claim.split('/');
    const nested = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
    return victim.sign({ ...claims, [claim]: expected, [top]: nested });
  },
  'pull request': async (_victim, random) => {
    const [github] = platforms as [Platform];
    const event_name = pick<unknown>(random, [
      'pull_request',
      'pull_request_target',
      undefined,
      null,
      ['push'],
      7.5,
    ]);
    return await github.sign({ ...genuine(github), event_name });
  },
  clock: signed((_claims, random) =>
    pick<() => object>(random, [
      () => ({ exp: seconds - 30 - random(100_000) }),
      () => ({ exp: pick(random, times) }),
      () => ({ exp: undefined }),
      () => ({ iat: seconds + 31 + random(100_000) }),
      () => ({ iat: pick(random, times) }),
      () => ({ iat: undefined }),
      () => ({ iat: seconds - 601 - random(100_000), exp: seconds + 1_000_000 }),
      () => ({ nbf: seconds + 31 + random(100_000) }),
      () => ({ nbf: pick(random, times.slice(0, 6)) }),
    ])(),
  ),
  'used more than once, without an id': signed((_claims, random) => ({
    jti: pick<unknown>(random, [undefined, null, '', ' ', 0, [], {}, 'a\u0000b', 'é', 'x'.repeat(256)]),
  })),
  async damaged(victim, random) {
    const token = await victim.sign(genuine(victim));
    const [head = '', body = '', signature = ''] = token.split('.');
    const at = random(body.length - 2) + 1;
    const flipped = body[at] === 'A' ? 'B' : 'A';
    return pick(random, [
      `${head}.${body.slice(0, at)}${flipped}${body.slice(at + 1)}.${signature}`,
      `${encode({ ...victim.header, typ: 'x' })}.${body}.${signature}`,
      `${head}.${encode({ ...genuine(victim), extra: 1 })}.${signature}`,
      `${head}.${body}.`,
      `${head}.${body}`,
      `${head}..${signature}`,
      `${token}.${signature}`,
      ` ${token}`,
      `${token}\n`,
      `${token}=`,
      `${head}.${body}.${signature.slice(4)}`,
      `${head}.${body}.${Buffer.alloc(64).toString('base64url')}`,
      `${head}.${body}.${'A'.repeat(16_384)}`,
      token.slice(0, random(token.length)),
      JSON.stringify({ protected: head, payload: body, signature }),
      '',
    ]);
  },
  'too large': (victim) => victim.sign({ ...genuine(victim), padding: 'x'.repeat(13_000) }),
  'critical header'(victim, random) {
    const crit = pick<unknown>(random, [['b64'], ['exp'], ['x'], [], 'b64', null]);
    const head = encode({ ...victim.header, b64: false, crit });
    return `${head}.${encode(genuine(victim))}.${Buffer.alloc(256).toString('base64url')}`;
  },
  'other algorithm'(victim, random) {
    const alg = pick(random, [
      'RS384',
      'RS512',
      'PS384',
      'ES384',
      'ES512',
      'ES256K',
      'Ed25519',
      'RSA1_5',
      'dir',
    ]);
    return `${encode({ ...victim.header, alg })}.${encode(genuine(victim))}.${Buffer.alloc(256, 1).toString('base64url')}`;
  },
};

/** Mulberry32: the same attacks for the same seed, but for the keys. */
function randomOf(start: number): Random {
  let state = start;
  return (below) => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** Makes `count` attacks, each kind equally often. Resolves with the tokens that were accepted: there must be none. */
export async function accepted(count: number, seed: number): Promise<string[]> {
  const random = randomOf(seed);
  const kinds = Object.entries(attacks);
  const found: string[] = [];
  for (let at = 0; at < count; at += 1) {
    const [name, attack] = pick(random, kinds);
    const token = await attack(pick(random, platforms), random);
    if ((await verdict(token)) === 'accepted') found.push(`${name}: ${token}`);
  }
  return found;
}

export const genuineToken = (of: Platform) => of.sign(genuine(of));
