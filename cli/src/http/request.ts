import { wrongUsage } from '../core/failure.ts';
import { type Option, optionFlag, type Verb } from '../core/verb.ts';

/** A request as a verb describes it, before it has a server and a credential. */
export type ApiRequest = {
  readonly method: string;
  /** Below /api/v2, encoded, with the query. */
  readonly path: string;
  readonly body?: Body;
  readonly ifMatch?: string;
  /** Besides those of the credential and the body. */
  readonly headers?: Readonly<Record<string, string>>;
};

export type Body =
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'bytes'; readonly type: string; readonly bytes: Uint8Array }
  | {
      readonly kind: 'file';
      readonly path: string;
      /** Default: by the ending of the name. */
      readonly type?: string;
      /** Called with the number of bytes of each part that was read. */
      readonly onRead?: (bytes: number) => void;
    };

export type Given = {
  /** In the order of the verb's arguments. */
  readonly arguments: readonly string[];
  /** Option name → value, as the parser of the command line returns it. */
  readonly options: Readonly<Record<string, unknown>>;
  /** The parsed content of `--input`. */
  readonly input?: unknown;
  readonly file?: string;
  readonly ifMatch?: string;
};

/** The request of a verb. @throws Failure of the code 2 */
export function requestOf(verb: Verb, given: Given): ApiRequest {
  const query: [string, string][] = [];
  const fields: Record<string, unknown> = {};
  for (const option of verb.options) {
    const value = given.options[option.name];
    if (value === undefined) continue;
    const isInQuery = option.in === 'query' || (option.in === 'either' && given.file !== undefined);
    if (isInQuery) query.push([option.name, queryText(value)]);
    else fields[option.name] = value;
  }
  const absent = verb.options.filter(
    ({ name, in: place, isRequired }) => isRequired && place === 'query' && given.options[name] === undefined,
  );
  if (absent.length > 0) throw wrongUsage(missing(absent));
  if (given.ifMatch === undefined && verb.ifMatch === 'required')
    throw wrongUsage('--if-match is missing.', 'Send the ETag that the verb for reading prints with --json.');
  const body = bodyOf(verb, given, fields);
  const search = query.length === 0 ? '' : `?${new URLSearchParams(query).toString()}`;
  return {
    method: verb.method,
    path: `${pathOf(verb, given.arguments)}${search}`,
    ...(body === undefined ? {} : { body }),
    ...(given.ifMatch === undefined ? {} : { ifMatch: given.ifMatch }),
  };
}

function bodyOf(verb: Verb, { file, input }: Given, fields: Record<string, unknown>): Body | undefined {
  if (file !== undefined) {
    if (input !== undefined) throw wrongUsage('--file and --input cannot be combined.');
    return { kind: 'file', path: file };
  }
  if (verb.file === 'required') throw wrongUsage('--file is missing.');
  if (verb.body === undefined) return undefined;
  const value = input === undefined ? fields : merged(input, fields);
  if (input === undefined) {
    const absent = verb.options.filter(
      ({ name, in: place, isRequired }) => isRequired && place !== 'query' && fields[name] === undefined,
    );
    if (absent.length > 0) throw wrongUsage(missing(absent));
    if (Object.keys(fields).length === 0)
      return verb.body === 'optional' ? emptyBody(verb) : nothingGiven(verb);
  }
  return { kind: 'json', value };
}

/** A route that takes files, too, has a body in any case. */
function emptyBody({ file }: Verb): Body | undefined {
  return file === undefined ? undefined : { kind: 'json', value: {} };
}

function nothingGiven({ options }: Verb): never {
  const inBody = options.filter((option) => option.in !== 'query');
  throw wrongUsage(
    inBody.length === 0 ? '--input is missing.' : `Nothing to send: give ${flags(inBody)} or --input.`,
  );
}

function missing(options: readonly Option[]): string {
  return `${flags(options)} ${options.length === 1 ? 'is' : 'are'} missing.`;
}

function flags(options: readonly Option[]): string {
  return options.map(({ name }) => optionFlag(name)).join(', ');
}

function merged(input: unknown, fields: Record<string, unknown>): unknown {
  if (Object.keys(fields).length === 0) return input;
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    throw wrongUsage('Options need an --input that is a JSON object.');
  return { ...input, ...fields };
}

function queryText(value: unknown): string {
  if (Array.isArray(value)) return value.join(',');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function pathOf({ path, arguments: named }: Verb, values: readonly string[]): string {
  const parts = new Map(
    named.flatMap(({ name }, at) => {
      const value = values[at] ?? '';
      if (name !== 'owner/name') return [[name, value] as const];
      const [owner = '', repository = '', ...rest] = value.split('/');
      if (owner === '' || repository === '' || rest.length > 0)
        throw wrongUsage('OWNER/NAME must look like acme/website.');
      return [['owner', owner] as const, ['name', repository] as const];
    }),
  );
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => segment(parts.get(name) ?? '', name === 'path'));
}

/** A dot segment would name another path of the API, and an empty one another route. */
function segment(value: string, hasSlashes: boolean): string {
  const segments = hasSlashes ? value.split('/') : [value];
  if (segments.some((one) => one === '' || one === '.' || one === '..'))
    throw wrongUsage('An argument in the address cannot be empty, "." or "..".');
  return segments.map(encodeURIComponent).join('/');
}
