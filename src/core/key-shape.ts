/**
 * Text shaped like one of our keys, whole or cut short, whatever product word its prefix has. For keeping keys out
 * of logs and out of stored text; features/keys/key-value.ts judges whether a value really is one.
 */
const shape = String.raw`\b([a-z][a-z0-9]{0,15}_(?:pat|svc)_)[0-9A-Za-z]{12,}`;
const all = new RegExp(shape, 'g');
const any = new RegExp(shape);

/** Masks key-shaped values in free text; the product word and type stay readable. */
export function maskKeys(text: string): string {
  return text.replace(all, '$1[redacted]');
}

export function containsKey(text: string): boolean {
  // Looked for in everything that is sent; nearly nothing gets past the first line.
  if (!text.includes('_pat_') && !text.includes('_svc_')) return false;
  return any.test(text);
}
