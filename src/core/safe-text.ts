import { maskKeys } from './key-shape.ts';

/** JSON as Postern stores it: no undefined, no NaN, nothing that a jsonb column would refuse. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

const maxTextLength = 1_000;

/**
 * Control characters (CR, LF, ESC, NUL, …), line separators, marks that change the reading direction, and zero-width
 * characters. Callers choose names and user agents, and must neither forge a second line nor hide part of the first
 * (AU-04). The joiner of emoji and scripts stays.
 */
const deceptive = /[\p{Cc}\u2028\u2029]|(?!\u200d)\p{Cf}/gu;

/** One printable line of at most 1,000 characters: `\u001b` instead of ESC, key-shaped values masked. */
export function safeText(text: string): string {
  const cut = text.length > maxTextLength ? `${text.slice(0, maxTextLength)}…` : text;
  return maskKeys(cut.toWellFormed()).replace(deceptive, escape);
}

/** Characters of a User-Agent that are stored. */
const maxAgentLength = 200;

/**
 * A User-Agent as Postern stores it, as {@link safeText}; null for none. The text is a copy: a part of a header would keep the
 * whole header in memory.
 */
export function safeAgent(agent: string | null | undefined): string | null {
  const text = safeText(agent?.trim() ?? '').slice(0, maxAgentLength);
  return text === '' ? null : Buffer.from(text).toString();
}

/** The same for everything inside `details`, including the names of fields. */
export function safeJson(value: unknown): Json {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return safeText(value);
  if (typeof value === 'boolean') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map(safeJson);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object') return null;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .map(([name, member]) => [safeText(name), safeJson(member)]),
  );
}

function escape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code > 0xff_ff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`;
}
