/** Contract 5: an identity answer that takes longer counts as no answer. */
export const identityTimeoutMs = 2_000;

/** Returns the answer of `question`, or `unavailable` when it fails or takes longer than `timeoutMs`. */
export async function bounded<T>(
  question: () => Promise<T>,
  timeoutMs: number,
  reasonOf: (error: unknown) => string,
): Promise<T | { readonly kind: 'unavailable'; readonly reason: string }> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<{ kind: 'unavailable'; reason: string }>((resolve) => {
    timer = setTimeout(() => resolve({ kind: 'unavailable', reason: 'timeout' }), timeoutMs);
  });
  try {
    return await Promise.race([question(), late]);
  } catch (error) {
    return { kind: 'unavailable', reason: reasonOf(error) };
  } finally {
    clearTimeout(timer);
  }
}
