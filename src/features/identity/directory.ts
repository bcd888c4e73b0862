import type { Role } from '../../core/caller.ts';

/**
 * What Postern asks of an identity provider, and nothing else (contract 5). Two implementations, one contract
 * suite (test/contract/directory.ts). Questions answer with data: `unavailable` covers refused, slow (over 2 s)
 * and garbled answers alike, and is never read as yes or no.
 */
export type Directory = {
  /** RFC 7662. `hint` as in RFC 7009; access tokens when absent. */
  introspect(token: string, hint?: 'access_token' | 'refresh_token'): Promise<Introspection>;
  /** Status and effective roles of one subject: direct, from groups, from groups above those. At once when it is known. */
  principal(subject: string): Principal | Promise<Principal>;
};

export type Introspection =
  | {
      readonly kind: 'active';
      readonly issuer: string;
      readonly subject: string;
      readonly clientId: string;
      readonly scopes: readonly string[];
      /** Milliseconds since the epoch. */
      readonly expiresAt: number;
    }
  | { readonly kind: 'inactive' }
  | { readonly kind: 'unavailable'; readonly reason: string };

export type Principal =
  | {
      readonly kind: 'active';
      readonly subject: string;
      readonly name: string;
      readonly email: string | null;
      readonly roles: readonly Role[];
    }
  | { readonly kind: 'disabled' }
  /** `wasKnown`: the account was deleted. False = the provider never had this subject, so nothing has changed. */
  | { readonly kind: 'missing'; readonly wasKnown: boolean }
  | { readonly kind: 'unavailable'; readonly reason: string };
