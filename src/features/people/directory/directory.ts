import type { Role } from '../../../core/caller.ts';

/**
 * Everything that Postern asks of an identity provider (contract 5). Two implementations pass one contract suite
 * (test/contract/directory.ts). Methods return data. `unavailable` covers refused, slow (over 2 s) and malformed
 * answers alike; callers must never treat it as yes or no.
 */
export type Directory = {
  /** RFC 7662. `hint` as in RFC 7009; the default is an access token. */
  introspect(token: string, hint?: 'access_token' | 'refresh_token'): Promise<Introspection>;
  /**
   * Status and effective roles of one subject: direct ones, those of its groups and of all ancestor groups. Synchronous when
   * the answer is cached. `isOwn`: do not share the answer to another request (short-sharing.ts).
   */
  principal(subject: string, how?: { readonly isOwn: boolean }): Principal | Promise<Principal>;
};

export type Introspection =
  | {
      readonly kind: 'active';
      readonly issuer: string;
      readonly subject: string;
      readonly clientId: string;
      readonly scopes: readonly string[];
      /** The resources that the token is for (RFC 8707, RFC 7519 section 4.1.3); empty when the answer names none. */
      readonly audiences: readonly string[];
      /** Identifies the sign-in or consent behind the token. Null: the provider does not say. */
      readonly grantId: string | null;
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
  /** `wasKnown`: true = the account was deleted; false = the provider never had this subject, so nothing has changed. */
  | { readonly kind: 'missing'; readonly wasKnown: boolean }
  | { readonly kind: 'unavailable'; readonly reason: string };
