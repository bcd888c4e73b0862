import type { z } from 'zod';

type Issue = z.core.$ZodRawIssue;
type Numbers = { readonly origin: string; readonly bound: number | bigint; readonly isInclusive: boolean };

/**
 * Turns a schema's refusal into plain words that follow the field's name: the mistake, and so the fix. A message in the
 * schema takes precedence; zod calls this only when there is none. Never repeats the value that was sent.
 */
export const inputWords = inputWordsWith('is not a field of this request');

/** The same, with another message for a field that the schema does not know. */
export function inputWordsWith(unknownField: string): (issue: Issue) => string {
  return (issue) => wordsFor(issue, unknownField);
}

function wordsFor(issue: Issue, unknownField: string): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined && !isWhole(issue)
        ? 'is required'
        : `must be ${typeNames[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return issue.input === undefined ? 'is required' : oneOf(issue.values);
    case 'too_small':
      return tooSmall({
        origin: issue.origin,
        bound: issue.minimum,
        isInclusive: issue.inclusive !== false,
      });
    case 'too_big':
      return tooBig({ origin: issue.origin, bound: issue.maximum, isInclusive: issue.inclusive !== false });
    case 'invalid_format':
      return formatWords[issue.format] ?? 'does not have the expected form';
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    case 'unrecognized_keys':
      return unknownField;
    case 'invalid_union':
      return unionWords(issue);
    case 'invalid_key':
      return `has a name that is not valid: it ${issue.issues[0]?.message ?? 'is not allowed'}`;
    case 'invalid_element':
      return `has an entry that is not valid: it ${issue.issues[0]?.message ?? 'is not allowed'}`;
    case 'custom':
    default:
      return 'is not allowed';
  }
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  null: 'null',
  array: 'a list',
  object: 'a JSON object',
  record: 'a JSON object',
};

const formatWords: Readonly<Record<string, string>> = {
  datetime: 'must be an RFC 3339 time with a zone, such as 2026-12-01T09:00:00Z',
  email: 'must be an e-mail address',
};

/** True when the whole body is missing, so that the message names an object and not a field. */
function isWhole(issue: Issue): boolean {
  return issue.path === undefined || issue.path.length === 0;
}

function oneOf(values: readonly unknown[]): string {
  return values.length === 1 ? `must be ${String(values[0])}` : `must be one of: ${values.join(', ')}`;
}

function tooSmall({ origin, bound, isInclusive }: Numbers): string {
  if (origin === 'string') return `must have at least ${counted(bound, 'character', 'characters')}`;
  if (origin === 'array') return `must be a list of at least ${counted(bound, 'entry', 'entries')}`;
  return isInclusive ? `must be at least ${bound}` : `must be more than ${bound}`;
}

function tooBig({ origin, bound, isInclusive }: Numbers): string {
  if (origin === 'string') return `must be at most ${counted(bound, 'character', 'characters')} long`;
  if (origin === 'array') return `must be a list of at most ${counted(bound, 'entry', 'entries')}`;
  return isInclusive ? `must be at most ${bound}` : `must be less than ${bound}`;
}

function counted(count: number | bigint, one: string, many: string): string {
  return `${count} ${Number(count) === 1 ? one : many}`;
}

type UnionIssue = Extract<Issue, { code: 'invalid_union' }>;

function unionWords(issue: UnionIssue): string {
  const { discriminator, options } = issue;
  if (discriminator !== undefined && Array.isArray(options)) {
    const isMissing = !Object.hasOwn(Object(issue.input), discriminator);
    return isMissing ? `is required: ${options.join(' or ')}` : oneOf(options);
  }
  const found = issue.errors.flat();
  // When one member of the union clearly was meant, its error is more useful than a list of all members.
  const meant = found.find(({ code }) => code !== 'invalid_type' && code !== 'invalid_union');
  if (meant !== undefined) return meant.message;
  const kinds = found.flatMap((one) => (one.code === 'invalid_type' ? [one.expected] : []));
  return `must be ${[...new Set(kinds)].map((kind) => typeNames[kind] ?? kind).join(' or ')}`;
}
