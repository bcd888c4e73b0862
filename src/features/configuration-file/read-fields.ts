import { z } from 'zod';
import { inputWordsWith } from '../../platform/input-words.ts';
import { didYouMean } from './nearest.ts';
import type { Finding, Rule } from './problem.ts';
import { type ConfigurationFile, configurationFile } from './schema.ts';

/** Reads the fields. For each invalid one, it reports what is wrong, what is allowed, and an example. */
export function readFields(value: unknown): ReadFields {
  const result = configurationFile.safeParse(value, { error: words, reportInput: true });
  return result.success
    ? { file: result.data, findings: [] }
    : { file: undefined, findings: findingsOf(result.error.issues) };
}

type ReadFields = { readonly file: ConfigurationFile | undefined; readonly findings: Iterable<Finding> };

function* findingsOf(issues: readonly z.core.$ZodIssue[]): Generator<Finding> {
  for (const issue of issues) yield* toFindings(issue);
}

const inputWords = inputWordsWith('is not a field');

function words(issue: z.core.$ZodRawIssue): string {
  if (issue.code !== 'invalid_type' || (issue.input === undefined && issue.path?.length !== 0))
    return inputWords(issue);
  return `is ${typeOf(issue.input)}; it must be ${typeNames[issue.expected] ?? issue.expected}`;
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map of fields',
  record: 'a map of fields',
};

function typeOf(value: unknown): string {
  if (value === null || value === undefined) return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'boolean') return String(value);
  return typeof value === 'object' ? 'a map of fields' : typeof value === 'number' ? 'a number' : 'text';
}

const ruleOf: Readonly<Partial<Record<z.core.$ZodIssue['code'], Rule>>> = {
  invalid_type: 'type',
  invalid_key: 'name',
};

function* toFindings(issue: z.core.$ZodIssue): Generator<Finding> {
  const path = issue.path.filter((step) => typeof step !== 'symbol');
  if (issue.code === 'unrecognized_keys') {
    for (const name of issue.keys) yield unknownField(path, name);
    return;
  }
  const isMissing = issue.code !== 'invalid_key' && issue.input === undefined;
  const subject =
    typeof path.at(-1) === 'number' ? `An entry of ${path.at(-2)}` : (path.at(-1) ?? 'The file');
  yield {
    path,
    at: issue.code === 'invalid_key' ? 'name' : 'value',
    rule: isMissing ? 'required' : (ruleOf[issue.code] ?? 'value'),
    message: `${subject} ${issue.message}.`,
    fix: fixOf(issue, path),
  };
}

function fixOf(issue: z.core.$ZodIssue, path: readonly (string | number)[]): string {
  if (issue.code === 'invalid_key') return 'Choose another name.';
  const meant =
    issue.code === 'invalid_value' && typeof issue.input === 'string'
      ? didYouMean(issue.input, issue.values.map(String))
      : null;
  if (meant !== null) return meant;
  if (issue.code === 'invalid_type' && issue.expected === 'string' && isPlain(issue.input))
    return 'Put the value into quotation marks.';
  const example = exampleAt(path);
  return example === undefined ? 'Correct the value.' : `Write, for example, ${path.at(-1)}: ${example}`;
}

function isPlain(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'boolean';
}

function unknownField(path: readonly (string | number)[], name: string): Finding {
  const fields = fieldsAt(path);
  const where = path.length === 0 ? 'the file' : path.join('.');
  return {
    path: [...path, name],
    at: 'name',
    rule: 'unknown_field',
    message: `${name} is not a field of ${where}.`,
    fix: didYouMean(name, fields) ?? `Remove it. The fields here are ${fields.join(', ')}.`,
  };
}

function fieldsAt(path: readonly (string | number)[]): string[] {
  const schema = layersOf(schemaAt(path)).at(-1);
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}

/** The example of a field in YAML's flow style, which JSON is. */
function exampleAt(path: readonly (string | number)[]): string | undefined {
  const example = layersOf(schemaAt(path)).flatMap((layer) => layer.meta()?.examples ?? [])[0];
  return example === undefined ? undefined : typeof example === 'string' ? example : JSON.stringify(example);
}

function schemaAt(path: readonly (string | number)[]): z.core.$ZodType | undefined {
  let at: z.core.$ZodType | undefined = configurationFile;
  for (const step of path) {
    const schema = layersOf(at).at(-1);
    if (schema instanceof z.ZodObject) at = schema.shape[String(step)];
    else if (schema instanceof z.ZodRecord) at = schema.valueType;
    else at = schema instanceof z.ZodArray ? schema.element : undefined;
  }
  return at;
}

/** A schema and the schemas that it wraps: the default, then the optional one, then the object. */
function layersOf(schema: z.core.$ZodType | undefined): z.ZodType[] {
  if (!(schema instanceof z.ZodType)) return [];
  const isWrapped =
    schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault;
  return isWrapped ? [schema, ...layersOf(schema.unwrap())] : [schema];
}
