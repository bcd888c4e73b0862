/**
 * Whether a sign-in that was proved at `provedAt` still counts for an account that was signed out everywhere at
 * `signedOutAt` (milliseconds; null = never). Of the very moment of the sign-out it does not (decision 0013).
 */
export function isProofGood(signedOutAt: number | null, provedAt: number): boolean {
  return signedOutAt === null || provedAt > signedOutAt;
}
