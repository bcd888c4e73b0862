import { safeText } from '../../core/safe-text.ts';

/** A mistake in a postern.yaml: where it is, what is wrong, and how to fix it. Lines and columns begin with 1. */
export type Problem = {
  readonly line: number;
  readonly column: number;
  /** The field, such as `services.web.build.output`. Empty: the whole file. */
  readonly path: string;
  readonly rule: Rule;
  readonly message: string;
  readonly fix: string;
};

/** The rules that a postern.yaml can break, with their meanings for the reference. */
export const rules = {
  missing: 'The branch has no postern.yaml.',
  size: 'The file is larger, or holds more, than Postern reads.',
  encoding: 'The file is not UTF-8 text.',
  yaml: 'The file is not the plain YAML that Postern reads.',
  duplicate_field: 'A map has the same field twice.',
  alias: 'An alias (`*name`) has no anchor, leads back to itself, or expands to too much.',
  unknown_field: 'The field does not exist here.',
  required: 'A required field is missing.',
  type: 'The value has the wrong type.',
  value: 'The value is not allowed.',
  name: 'The name of a field is not allowed.',
  kind: 'The fields of a service do not fit together.',
  unknown_service: 'The service does not exist in this file.',
  circle: 'Services wait for each other in a circle.',
  route: 'A route leads to a service that cannot answer it.',
  reference: 'A `${…}` in a variable does not name a value.',
  key: 'The file contains a value that looks like an API key.',
  unsupported: 'The service is written correctly, and this version of Postern cannot deploy it.',
  policy: 'The Environment policy does not allow it.',
} as const satisfies Record<string, string>;

export type Rule = keyof typeof rules;

/** The file is in the top folder of a branch. */
export const configurationFileName = 'postern.yaml';

/** The other common extension, which people use by mistake. */
export const otherFileName = 'postern.yml';

export function missingFile(hasOther: boolean): Problem {
  const message = `The branch has no ${configurationFileName} in its top folder`;
  return {
    line: 1,
    column: 1,
    path: '',
    rule: 'missing',
    message: hasOther ? `${message}. It has a ${otherFileName}, which Postern does not read.` : `${message}.`,
    fix: hasOther
      ? `Rename ${otherFileName} to ${configurationFileName}.`
      : `Add ${configurationFileName} to the branch.`,
  };
}

/** A mistake at a field. The text of the file is needed to find the line. */
export type Finding = Pick<Problem, 'rule' | 'message' | 'fix'> & {
  readonly path: readonly (string | number)[];
  /** Whether the problem points to the name of the field or to its value. */
  readonly at: 'name' | 'value';
};

/** Maximum reported problems of a file. */
export const maxProblems = 100;

/** Yields only as many findings as are reported: a file can break rules a million times, and each finding costs work. */
export function* firstOf(findings: Iterable<Finding>): Generator<Finding> {
  let count = 0;
  for (const found of findings) {
    yield found;
    count += 1;
    if (count >= maxProblems) return;
  }
}

export type Said = Pick<Finding, 'rule' | 'message' | 'fix'>;

/** The problem as clients see it: bounded, on one line, and without key-shaped values. */
export function problemAt(
  text: string,
  offset: number,
  { rule, message, fix }: Said,
  path: Finding['path'] = [],
): Problem {
  // The YAML library's own counter misses lines inside broken collections.
  const before = text.slice(0, offset);
  return {
    line: before.split('\n').length,
    column: before.length - before.lastIndexOf('\n'),
    path: safeText(path.join('.')),
    rule,
    message: safeText(message),
    fix: safeText(fix),
  };
}
