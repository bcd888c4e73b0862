/** When accounts were signed out everywhere. */
export type SignOuts = {
  /**
   * In milliseconds; null = never; Infinity = no such account. `hold`: no sign-out commits before the transaction ends.
   */
  signedOutAt(subject: string, options?: { hold: boolean }): Promise<number | null>;
};

/**
 * Whether a sign-in proved at `provedAt` is still valid for an account that was signed out everywhere at `signedOutAt`
 * (milliseconds; null = never). A sign-in at exactly the moment of the sign-out is not (decision 0013).
 */
export function isAuthenticationValid(signedOutAt: number | null, provedAt: number): boolean {
  return signedOutAt === null || provedAt > signedOutAt;
}
