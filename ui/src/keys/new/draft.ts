import { ApiProblem, sentenceOf } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { type Access, accessFrom, scopesOf, touchesOnlySites } from './access.ts';
import { mistakesInRule, requestOf, type RuleDraft } from '../trust/rule-draft.ts';
import type { Prefill } from './prefill.ts';
import { publicKeyIn } from './public-key.ts';

/** The input of the form, its errors, and the request. All of it stays in the page's memory. */
export type Policy = Schemas['MyKeyPolicy'];

export type Expiry =
  | { readonly kind: 'hours'; readonly hours: number }
  /** The value of a datetime-local field, in the user's time zone. */
  | { readonly kind: 'custom'; readonly at: string }
  | { readonly kind: 'never'; readonly isAccepted: boolean };

export type Draft = {
  readonly name: string;
  readonly access: Access;
  readonly reach: 'selected' | 'all';
  readonly repositories: readonly string[];
  readonly expiry: Expiry;
  /** Federated: the key has no value. Only a service key can be. */
  readonly credential: Schemas['Key']['credential'];
  /** The first trust rule of a federated key. Null: rules are added later. */
  readonly rule: RuleDraft | null;
  /** The public key that was pasted; the value is encrypted to it. Null: the value is shown. */
  readonly publicKey: string | null;
};

export type Field = 'name' | 'scopes' | 'repositories' | 'expiry' | 'rule' | 'publicKey';
export type FieldErrors = Readonly<Partial<Record<Field, string>>>;
/** The fields in the order of the page. */
export const fields: readonly Field[] = ['name', 'scopes', 'repositories', 'expiry', 'rule', 'publicKey'];

export function firstDraft(policy: Policy, { name = '', scopes = '', ttlHours }: Prefill): Draft {
  const hours =
    ttlHours !== undefined && ttlHours <= policy.lifetime.maxTtlHours
      ? ttlHours
      : policy.lifetime.defaultTtlHours;
  return {
    name,
    access: accessFrom(scopes.split(/[\s,]+/), policy.allowedScopes),
    reach: 'selected',
    repositories: [],
    expiry: { kind: 'hours', hours },
    credential: 'value',
    rule: null,
    publicKey: null,
  };
}

/** Sites belong to no repository. The server requires a selection nevertheless, so only "all" spares the choice. */
export function needsRepositories({ access }: Pick<Draft, 'access'>, policy: Policy): boolean {
  return !touchesOnlySites(access) || !policy.repositories.allowAll;
}

/**
 * The draft as a request. Where the user has no choice of repositories, the form selects "all" if the policy allows it,
 * because the server refuses an empty selection. An earlier choice stays in the draft.
 */
export function withSelection(draft: Draft, policy: Policy, isRegistryEmpty: boolean): Draft {
  const isUnregistered = isRegistryEmpty && policy.repositories.allowAll && draft.repositories.length === 0;
  return isUnregistered || !needsRepositories(draft, policy) ? { ...draft, reach: 'all' } : draft;
}

export function mistakesIn(draft: Draft, policy: Policy, now: number): FieldErrors {
  const { name, access, reach, repositories, expiry } = draft;
  return {
    ...(name.trim() === '' ? { name: 'Give it a name, such as the script that will use it.' } : {}),
    ...(scopesOf(access).length === 0 ? { scopes: 'Choose at least one thing that the key may do.' } : {}),
    ...(reach === 'selected' && repositories.length === 0
      ? { repositories: 'Choose at least one repository; an empty list does not mean all.' }
      : {}),
    ...mistakeInExpiry(expiry, policy, now),
    ...mistakeInCredential(draft),
  };
}

function mistakeInCredential({ credential, rule, publicKey }: Draft): FieldErrors {
  if (credential === 'federated')
    return rule !== null && Object.keys(mistakesInRule(rule)).length > 0
      ? { rule: 'Correct the marked fields.' }
      : {};
  const read = publicKey === null ? undefined : publicKeyIn(publicKey);
  return read !== undefined && 'mistake' in read ? { publicKey: read.mistake } : {};
}

export function mistakeInExpiry(expiry: Expiry, policy: Policy, now: number): FieldErrors {
  if (expiry.kind === 'hours') return {};
  if (expiry.kind === 'never') {
    return expiry.isAccepted ? {} : { expiry: 'Confirm that the key may work until someone revokes it.' };
  }
  const at = Date.parse(expiry.at);
  if (Number.isNaN(at)) return { expiry: 'Choose a day and a time.' };
  if (at <= now) return { expiry: 'Choose a time in the future.' };
  const maxMs = policy.lifetime.maxTtlHours * 3_600_000;
  return at > now + maxMs ? { expiry: 'This is later than the policy allows.' } : {};
}

type Body = Schemas['CreateKeyRequest'] & Pick<Schemas['CreateServiceKeyRequest'], 'credential' | 'trust'>;

export function bodyOf(draft: Draft): Body {
  const { name, access, reach, repositories, expiry } = draft;
  return {
    name: name.trim(),
    scopes: scopesOf(access),
    repositoryAccess:
      reach === 'all' ? { mode: 'all' } : { mode: 'selected', repositories: [...repositories] },
    ...lifetimeOf(expiry),
    ...credentialOf(draft),
  };
}

function credentialOf({ credential, rule, publicKey }: Draft): Pick<Body, 'credential' | 'trust' | 'sealTo'> {
  if (credential === 'federated') return { credential, trust: rule === null ? [] : [requestOf(rule)] };
  const read = publicKey === null ? undefined : publicKeyIn(publicKey);
  return read !== undefined && 'sealTo' in read ? { sealTo: read.sealTo } : {};
}

export function lifetimeOf(expiry: Expiry): { ttlHours?: number; expiresAt?: string } {
  if (expiry.kind === 'never') return {};
  return expiry.kind === 'hours'
    ? { ttlHours: expiry.hours }
    : { expiresAt: new Date(expiry.at).toISOString() };
}

const fieldOfCode: Readonly<Partial<Record<ApiProblem['code'], Field>>> = {
  invalid_name: 'name',
  invalid_scopes: 'scopes',
  forbidden_scope: 'scopes',
  scope_not_allowed: 'scopes',
  invalid_repository_access: 'repositories',
  repo_not_found: 'repositories',
  repository_policy: 'repositories',
  invalid_expiry: 'expiry',
  expiry_required: 'expiry',
  lifetime_too_long: 'expiry',
  invalid_trust_rule: 'rule',
};

const fieldOfName: Readonly<Record<string, Field>> = {
  name: 'name',
  scopes: 'scopes',
  repositoryAccess: 'repositories',
  ttlHours: 'expiry',
  expiresAt: 'expiry',
  sealTo: 'publicKey',
};

/** The errors of a refusal by field; empty if it names none. */
export function errorsFrom(problem: unknown): FieldErrors {
  if (!(problem instanceof ApiProblem)) return {};
  const named = problem.fields.flatMap(({ field, problem: words }) => {
    const own = fieldOfName[field.split(/[.[]/)[0] ?? ''];
    return own === undefined ? [] : [[own, sentenceOf(words)] as const];
  });
  if (named.length > 0) return Object.fromEntries(named.toReversed());
  const field = fieldOfCode[problem.code];
  return field === undefined ? {} : { [field]: `${problem.message} ${problem.hint}` };
}
