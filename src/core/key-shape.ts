/**
 * Text shaped like a Postern key, an exchanged token or the token of an upload, whole or truncated, with any word before
 * `_pat_`, `_svc_`, `_fed_` or `_upl_`. Used to keep them out of logs and stored text; features/keys/key-value.ts decides
 * whether a value really is one. Nothing needs to separate the key from what is before it: in `TOKEN_app_pat_…`, or directly
 * after another key, it is as secret.
 */
const shape = '((?:[a-z][a-z0-9]{0,15})?_(?:pat|svc|fed|upl)_)[0-9A-Za-z]{12,}';
const all = new RegExp(shape, 'g');
const any = new RegExp(shape);

/** Masks key-shaped values in free text; the product word and type stay readable. */
export function maskKeys(text: string): string {
  return mayHoldKey(text) ? text.replace(all, '$1[redacted]') : text;
}

/** Every key holds one of these. Searching for them first is cheap, and nearly every text has none. */
export const keyInfixes = ['_pat_', '_svc_', '_fed_', '_upl_'] as const;

/** True for every text that holds a key, and for few others: enough to look closer, or to treat a credential as a key. */
export function mayHoldKey(text: string): boolean {
  return (
    text.includes(keyInfixes[0]) ||
    text.includes(keyInfixes[1]) ||
    text.includes(keyInfixes[2]) ||
    text.includes(keyInfixes[3])
  );
}

export function containsKey(text: string): boolean {
  // This check runs on everything that is sent, and nearly every text returns here.
  if (!mayHoldKey(text)) return false;
  return any.test(text);
}

/** Where key-shaped values begin in the text; at most `max` of them. */
export function keyPositions(text: string, max: number): number[] {
  if (!mayHoldKey(text)) return [];
  return Array.from(text.matchAll(all), ({ index }) => index).slice(0, max);
}
