import type { Scope } from './scopes.ts';

/** The two roles the product knows; their names at the provider are configuration. */
export type Role = 'user' | 'admin';

export type KeyType = 'personal' | 'service';

/** Which repositories a key reaches. Bound to ids, so a rename neither widens nor breaks it (contract 4). */
export type RepositoryAccess =
  | { readonly mode: 'all' }
  | { readonly mode: 'selected'; readonly repositoryIds: readonly string[] };

/** What the agents of a definition reach. The scopes of the caller say what they may do there. */
export type AgentReach = {
  readonly definitionId: string;
  readonly repositories: RepositoryAccess;
  /** Maximum Environments of one person under this definition. Null: the limit of the Environment policy. */
  readonly maxEnvironments: number | null;
  /** The longest lease; null: as long as the Environment policy allows. */
  readonly environmentTtlHours: number | null;
};

/** A person as this service knows them: `id` is ours, (issuer, subject) is the provider's and immutable. */
export type UserRef = {
  readonly id: string;
  readonly issuer: string;
  readonly subject: string;
  readonly name: string;
};

/** What every surface may know of a verified key. The value and its digest are not part of it. */
export type CallerKey = {
  readonly id: string;
  readonly type: KeyType;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly repositories: RepositoryAccess;
  /** Names of the selected repositories, sorted; empty when all. */
  readonly repositoryNames: readonly string[];
  /** Milliseconds; null = never. */
  readonly expiresAt: number | null;
  /** False only for imported personal keys that name no user. */
  readonly isBound: boolean;
  /** Set by the owner sweep while the owner is disabled or lacks the role `user` (contract 5). */
  readonly isSuspended: boolean;
  /** The policy's authentication switch for this type. */
  readonly isTypeEnabled: boolean;
};

/** What the ID token behind an exchanged token said about the job. */
export type Exchange = {
  /** The public id in the exchanged token. */
  readonly tokenId: string;
  readonly issuer: string;
  readonly repository: string | null;
  readonly ref: string | null;
  readonly run: string | null;
  /** When the exchanged token ends, in milliseconds. */
  readonly expiresAt: number;
};

/** The caller of a request. No code behind authentication sees the raw credential. */
export type Caller =
  | { readonly kind: 'anonymous' }
  | {
      readonly kind: 'session';
      readonly user: UserRef;
      readonly sessionId: string;
      readonly expiresAt: number;
      /** When the person last proved who they are, in milliseconds; null = not known. */
      readonly authenticatedAt: number | null;
    }
  | {
      readonly kind: 'access_token';
      readonly user: UserRef;
      readonly scopes: readonly string[];
      readonly clientId: string;
      readonly expiresAt: number;
      /** Null: no agent, or one without a definition. */
      readonly agent: AgentReach | null;
    }
  | { readonly kind: 'personal_key'; readonly key: CallerKey; readonly user: UserRef | null }
  | {
      readonly kind: 'service_key';
      readonly key: CallerKey;
      /** Absent: the request has the value of the key. */
      readonly exchange?: Exchange;
    };

/** The repositories that the caller reaches. */
export function repositoryAccessOf(caller: Caller): RepositoryAccess {
  if ('key' in caller) return caller.key.repositories;
  if (caller.kind === 'access_token' && caller.agent !== null) return caller.agent.repositories;
  return { mode: 'all' };
}

/** Null: no agent with a definition. */
export function agentOf(caller: Caller): AgentReach | null {
  return caller.kind === 'access_token' ? caller.agent : null;
}

export const anonymous: Caller = { kind: 'anonymous' };

export type CallerKind = Caller['kind'];
export type KeyCaller = Extract<Caller, { key: CallerKey }>;

export const callerKinds = ['session', 'access_token', 'personal_key', 'service_key'] as const;

export function userOf(caller: Caller): UserRef | null {
  if (caller.kind === 'anonymous' || caller.kind === 'service_key') return null;
  return caller.user;
}

/** What a site or an Environment belongs to: one person, or exactly one service key. */
export type Owner = { readonly kind: 'user' | 'service_key'; readonly id: string };

/** The owner of what a caller creates and changes. Null when the caller is neither a person nor a service key. */
export function ownerOf(caller: Caller): Owner | null {
  if (caller.kind === 'service_key') return { kind: 'service_key', id: caller.key.id };
  const user = userOf(caller);
  return user === null ? null : { kind: 'user', id: user.id };
}

export function isSameOwner(one: Owner | null, other: Owner): boolean {
  return one !== null && one.kind === other.kind && one.id === other.id;
}

/** Who acted, for the audit log. `credential` is a key id, a session id or a client id; never a secret. */
export type Actor = {
  readonly kind: 'user' | 'service_key' | 'system' | 'anonymous';
  readonly id: string | null;
  readonly name: string | null;
  readonly credential: string | null;
};

const systemActor: Actor = { kind: 'system', id: null, name: 'postern', credential: null };

export function actorOf(caller: Caller): Actor {
  switch (caller.kind) {
    case 'anonymous':
      return { kind: 'anonymous', id: null, name: null, credential: null };
    case 'session':
      return { kind: 'user', id: caller.user.id, name: caller.user.name, credential: caller.sessionId };
    case 'access_token':
      return { kind: 'user', id: caller.user.id, name: caller.user.name, credential: caller.clientId };
    case 'personal_key':
      return {
        kind: 'user',
        id: caller.user?.id ?? null,
        name: caller.user?.name ?? null,
        credential: caller.key.id,
      };
    case 'service_key':
      return { kind: 'service_key', id: caller.key.id, name: caller.key.name, credential: caller.key.id };
  }
}

/** Where a request came from; written into every audit event it causes. */
export type RequestOrigin = {
  readonly requestId: string | null;
  readonly address: string | null;
  readonly agent: string | null;
};

/** The audit context: who acts and from where. Every command takes one, for its audit event. */
export type AuditContext = { readonly actor: Actor; readonly origin: RequestOrigin };

export const systemAuditContext: AuditContext = {
  actor: systemActor,
  origin: { requestId: null, address: null, agent: null },
};
