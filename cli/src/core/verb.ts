/** A verb that sends one request. `npm run build:cli` generates the list, verbs.json, from the routes of the server. */
export type Verb = {
  /** Its words, as typed: `sites list`. */
  readonly name: string;
  readonly summary: string;
  readonly description?: string;
  readonly method: string;
  /** Below /api/v2, with parameters as `{id}`; `{path*}` may contain slashes. */
  readonly path: string;
  /** Which credentials it accepts: `keys` means keys and access tokens. */
  readonly callers: 'anyone' | 'keys' | 'tokens';
  readonly scope?: string;
  readonly arguments: readonly Argument[];
  readonly options: readonly Option[];
  readonly ifMatch?: 'optional' | 'required';
  /** A JSON body: some fields are options, and `--input` takes all of them. */
  readonly body?: 'optional' | 'required';
  /** Fields of the body that are secrets, and so no options. */
  readonly inputOnly?: readonly string[];
  /** The body is a file. `optional`: or JSON. */
  readonly file?: 'optional' | 'required';
  readonly pagination?: 'page' | 'cursor';
  /** Fields of the result, or of each of its items; absent when the result has none. */
  readonly fields?: readonly string[];
  /** The `fields` that hold one value, which a list shows. */
  readonly columns?: readonly string[];
  /** True: lines of a log, which `--follow` prints as they are written. */
  readonly follows?: true;
  /** True: asks before it sends, because the change cannot be undone by a second request. */
  readonly asks?: true;
};

export type Argument = { readonly name: string; readonly meaning: string };

export type Option = {
  /** The name in the request; typed as --kebab-case. */
  readonly name: string;
  /** `either`: in the body, or in the query when a file is the body. */
  readonly in: 'query' | 'body' | 'either';
  readonly type: 'text' | 'number' | 'flag' | 'list' | 'json';
  readonly choices?: readonly string[];
  readonly isRequired?: true;
  readonly meaning: string;
};

/** What verbs.json holds. */
export type Verbs = {
  readonly version: string;
  readonly groups: Readonly<Record<string, string>>;
  readonly verbs: readonly Verb[];
  /** Routes that only a browser session can call: `GET /me/tokens/{id}`. */
  readonly sessionRoutes: readonly string[];
};

export function optionFlag(name: string): string {
  return `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
