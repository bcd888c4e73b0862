import { AppError } from '../../core/errors.ts';
import type { Preset, TrustedIssuer } from './trusted-issuer.ts';

/** The rules that say which ID tokens a key accepts, as pure functions. trust-schemas.ts has their wire shape. */
export type TrustRule = {
  readonly id: string;
  /** Equal to the claim `iss`. */
  readonly issuer: string;
  /** The text of each claim, by its name or, for a nested one, its JSON Pointer (RFC 6901). */
  readonly claims: Readonly<Record<string, string>>;
  /** Lifetime of an exchanged token. */
  readonly maxTtlMinutes: number;
  /** Age of an ID token, from its claim `iat`. */
  readonly maxAgeMinutes: number;
  /** Whether an ID token can be exchanged only once. */
  readonly singleUse: boolean;
};

/** A rule as a request sends it. The preset of the issuer has defaults for what is absent. */
export type TrustRequest = Pick<TrustRule, 'issuer' | 'claims' | 'maxTtlMinutes'> & {
  readonly maxAgeMinutes?: number | undefined;
  readonly singleUse?: boolean | undefined;
};

export const maxTrustRules = 10;
/** No rule accepts an older ID token. */
export const longestMaxAgeMinutes = 60;

/** A claim that differs from the rule. `found` is null for an absent claim, and for one that is no text. */
export type FailedClaim = {
  readonly claim: string;
  readonly expected: string;
  readonly found: string | null;
};

/** A job of GitHub gets an ID token for each request. GitLab and Kubernetes give one for a whole job, or for an hour. */
export const presetDefaults: Readonly<Record<Preset, Pick<TrustRule, 'maxAgeMinutes' | 'singleUse'>>> = {
  github: { maxAgeMinutes: 10, singleUse: true },
  gitlab: { maxAgeMinutes: 60, singleUse: false },
  kubernetes: { maxAgeMinutes: 60, singleUse: false },
  other: { maxAgeMinutes: 10, singleUse: true },
};

/** Claims that a rule must name: one of each group. Names can be used again after a deletion, so GitHub has ids. */
export const requiredClaims: Readonly<Record<Preset, readonly (readonly string[])[]>> = {
  github: [['repository_id'], ['repository_owner_id'], ['ref', 'environment']],
  gitlab: [['project_id'], ['ref'], ['ref_type'], ['ref_protected']],
  kubernetes: [['/kubernetes.io/namespace'], ['/kubernetes.io/serviceaccount/name']],
  other: [],
};

/** A `*` at the end of these stands for any text. */
const openEnded = ['ref', 'environment', 'workflow_ref'];

/** Postern checks these itself, or they differ in every ID token, so that a rule cannot name them. */
const checkedAnyway = ['iss', 'aud', 'exp', 'nbf', 'iat', 'jti'];

/** Events in which code of a fork can run that the repository never merged. */
const events: readonly (string | null)[] = ['pull_request', 'pull_request_target', null];

/**
 * The rule of a request, with the defaults of the issuer's preset.
 * @throws AppError invalid_trust_rule
 */
export function toTrustRule(issuers: readonly TrustedIssuer[], asked: TrustRequest): Omit<TrustRule, 'id'> {
  const issuer = issuers.find(({ url }) => url === asked.issuer);
  const problems =
    issuer === undefined
      ? [{ field: 'issuer', problem: unknownIssuer(issuers) }]
      : problemsIn(issuer.preset, asked.claims);
  const [first] = problems;
  if (issuer === undefined || first !== undefined)
    throw new AppError('invalid_trust_rule', {
      message: `${first?.field}: ${first?.problem}`,
      details: { fields: problems.slice(0, 20) },
    });
  const { maxAgeMinutes, singleUse } = presetDefaults[issuer.preset];
  return {
    issuer: asked.issuer,
    claims: asked.claims,
    maxTtlMinutes: asked.maxTtlMinutes,
    maxAgeMinutes: asked.maxAgeMinutes ?? maxAgeMinutes,
    singleUse: asked.singleUse ?? singleUse,
  };
}

function unknownIssuer(issuers: readonly TrustedIssuer[]): string {
  if (issuers.length === 0) return 'is not in the key policy, which has no issuer yet';
  return `is not in the key policy; it has ${issuers.map(({ url }) => url).join(', ')}`;
}

type Problem = { readonly field: string; readonly problem: string };

function problemsIn(preset: Preset, claims: TrustRule['claims']): Problem[] {
  const names = Object.keys(claims);
  const ofClaims = Object.entries(claims).flatMap(([name, text]) => {
    const problem = problemOfName(name) ?? problemOfText(name, text);
    return problem === null ? [] : [{ field: `claims.${name}`, problem }];
  });
  const missing = requiredClaims[preset].filter((group) => !group.some((name) => names.includes(name)));
  return [
    ...ofClaims,
    ...missing.map((group) => ({
      field: 'claims',
      problem: `must name ${group.join(' or ')}, which the preset ${preset} requires`,
    })),
    ...(preset === 'other' && names.length < 2
      ? [{ field: 'claims', problem: 'must name at least two claims' }]
      : []),
  ];
}

function problemOfName(name: string): string | null {
  if (name === 'sub')
    return 'must not be named, because settings of the platform change its text; name the claims that it consists of';
  const top = name.startsWith('/') ? name.split('/')[1] : name;
  if (checkedAnyway.includes(top ?? '')) return 'must not be named; Postern checks it for every ID token';
  if (name.startsWith('/') && !/^(?:\/(?:[^/~]|~[01])*){2,}$/.test(name))
    return 'must be a JSON Pointer to a nested claim (RFC 6901), such as /kubernetes.io/namespace; a claim at the top has no slash';
  return null;
}

function problemOfText(name: string, text: string): string | null {
  const at = text.indexOf('*');
  if (at < 0) return null;
  if (!openEnded.includes(name)) return `must not have a *; only ${openEnded.join(', ')} may end with one`;
  if (at < text.length - 1) return 'may have only one *, at its end';
  return text === '*' ? 'must not be only a *' : null;
}

/** The claims of an ID token that differ from the rule. Empty: the rule accepts them. */
export function failedClaims(preset: Preset, rule: Pick<TrustRule, 'claims'>, claims: object): FailedClaim[] {
  const differences = Object.entries(rule.claims).map(([claim, expected]) => ({
    claim,
    expected,
    found: textOf(claims, claim),
  }));
  const event = textOf(claims, 'event_name');
  const isForked = preset === 'github' && !Object.hasOwn(rule.claims, 'event_name') && events.includes(event);
  return [
    ...differences.filter(({ claim, expected, found }) => !isEqual(claim, expected, found)),
    ...(isForked
      ? [
          {
            claim: 'event_name',
            expected: 'any except pull_request and pull_request_target',
            found: event,
          },
        ]
      : []),
  ];
}

function isEqual(claim: string, expected: string, found: string | null): boolean {
  if (found === null) return false;
  const isPrefix = expected.endsWith('*') && openEnded.includes(claim);
  return isPrefix ? found.startsWith(expected.slice(0, -1)) : found === expected;
}

/** The text of a claim. Null: absent, or not a string, whole number or boolean. */
export function textOf(claims: object, name: string): string | null {
  const found = name.startsWith('/') ? pointedAt(claims, name) : memberOf(claims, name);
  if (typeof found === 'string') return found;
  // Other numbers may have lost digits, and would then equal another number.
  const isText = typeof found === 'boolean' || Number.isSafeInteger(found);
  return isText ? String(found) : null;
}

/** The id of an ID token. Null: it has none, so its second use cannot be recognized. */
export function tokenIdOf(claims: object): string | null {
  const jti = memberOf(claims, 'jti');
  return typeof jti === 'string' && /^[\x21-\x7e]{1,255}$/.test(jti) ? jti : null;
}

/** The only audience. Null: there is none, or a list without exactly one. */
export function audienceOf(claims: object): string | null {
  const aud = memberOf(claims, 'aud');
  if (!Array.isArray(aud)) return textOf(claims, 'aud');
  return aud.length === 1 ? textOf(claims, '/aud/0') : null;
}

function pointedAt(claims: object, pointer: string): unknown {
  let found: unknown = claims;
  for (const token of pointer.slice(1).split('/')) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    const isIndex = !Array.isArray(found) || /^(?:0|[1-9]\d*)$/.test(name);
    found = isIndex ? memberOf(found, name) : undefined;
  }
  return found;
}

/** A member of the object itself, never of its prototype. */
function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[name];
}
