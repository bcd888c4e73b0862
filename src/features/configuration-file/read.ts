import { keyPositions } from '../../core/key-shape.ts';
import { readFields } from './read-fields.ts';
import { type Finding, firstOf, maxProblems, type Problem, problemAt } from './problem.ts';
import { brokenRules } from './rules.ts';
import type { ConfigurationFile } from './schema.ts';
import { keyFound, readYaml } from './yaml-text.ts';

/** Maximum bytes of the file in UTF-8. */
export const maxFileBytes = 256 * 1024;

export type ReadConfigurationFile =
  | {
      readonly kind: 'valid';
      readonly file: ConfigurationFile;
      /** Locates a finding of other rules, such as those of the policy. */
      problemOf(finding: Finding): Problem;
    }
  /** At most 100 problems, in the order of the file. */
  | { readonly kind: 'invalid'; readonly problems: readonly Problem[] };

/** Reads the text of a postern.yaml, and finds every problem at once. Never throws. */
export function readConfigurationFile(text: string): ReadConfigurationFile {
  const problems = [...unreadable(text), ...keysIn(text)];
  if (problems.some(({ rule }) => rule !== 'key')) return invalid(problems);
  const yaml = readYaml(text);
  problems.push(...yaml.problems);
  if (yaml.kind === 'broken') return invalid(problems);
  const { file, findings } = readFields(yaml.value);
  for (const found of [findings, brokenRules(yaml.value)])
    for (const finding of firstOf(found)) problems.push(yaml.problemOf(finding));
  if (file === undefined || problems.length > 0) return invalid(problems);
  return { kind: 'valid', file, problemOf: yaml.problemOf };
}

function invalid(problems: readonly Problem[]): ReadConfigurationFile {
  const inOrder = problems.toSorted((one, other) => one.line - other.line || one.column - other.column);
  return { kind: 'invalid', problems: inOrder.slice(0, maxProblems) };
}

/** Problems that prevent reading the text as YAML. */
function unreadable(text: string): Problem[] {
  if (Buffer.byteLength(text) > maxFileBytes) {
    const message = `The file is larger than ${maxFileBytes / 1024} KiB.`;
    return [problemAt(text, 0, { rule: 'size', message, fix: 'Make the file smaller.' })];
  }
  const offset = text.search(noText);
  if (offset < 0) return [];
  const message = 'The file is not UTF-8, or contains a control character.';
  return [problemAt(text, offset, { rule: 'encoding', message, fix: 'Save the file as UTF-8 text.' })];
}

/** Control characters, and the replacement character for bytes that are not UTF-8. */
const noText = /(?![\t\n\r\u0085])\p{Cc}|\p{Cs}|\ufffd/u;

/** Finds keys anywhere in the text, also in comments: every reader of the repository could use them. */
function keysIn(text: string): Problem[] {
  return keyPositions(text, maxProblems).map((offset) => problemAt(text, offset, keyFound));
}
