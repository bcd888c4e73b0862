import { createHash } from 'node:crypto';
import { canonicalJson } from '../audit/audit.ts';

/** The text of an external server about one of its tools. All of it can reach a language model, except the annotations. */
export type ToolText = {
  readonly name: string;
  readonly title: string | null;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly outputSchema: Readonly<Record<string, unknown>> | null;
  readonly annotations: Readonly<Record<string, unknown>> | null;
};

/** An acceptance holds for exactly this text. The order of members is not part of it. */
export function digestOf(text: ToolText): string {
  return createHash('sha256').update(canonicalJson(text)).digest('base64url');
}

/** Bytes of a tool with its schemas, as JSON. */
const maxToolBytes = 16_384;
/** Clients of language models accept these names; the slug and two underscores precede the name. */
export const namePattern = /^[A-Za-z0-9_.-]{1,64}$/;
/** An administrator cannot see these characters, and a language model reads them. The two joiners are in many scripts. */
const invisible = /(?![\n\r\t])\p{Cc}|[\u2028\u2029]|(?![\u200c\u200d])\p{Cf}|\p{Co}|\p{Cs}/u;

/** Why an administrator cannot accept this text; null: nothing is wrong with its form. */
export function problemOf(text: ToolText): string | null {
  if (!namePattern.test(text.name))
    return 'The name of a tool must be 1 to 64 letters, digits, underscores, dots and hyphens.';
  const bytes = Buffer.byteLength(JSON.stringify(text));
  if (bytes > maxToolBytes)
    return `The tool has ${bytes} bytes of text and schemas; at most ${maxToolBytes} are allowed.`;
  if (textsIn(text).some((one) => invisible.test(one)))
    return 'The text contains invisible characters or characters that change the text direction.';
  return null;
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsIn(member)]);
}
