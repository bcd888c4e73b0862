import {
  type HeaderRule,
  headersFile,
  maxRulesBytes,
  parseHeaders,
  parseRedirects,
  type RedirectRule,
  redirectsFile,
  type RuleProblem,
} from './site-rules.ts';
import type { Manifest } from './manifest.ts';

/** What the files `_redirects` and `_headers` of a version say, and which of their lines are not applied. */
export type VersionRules = {
  readonly redirects: readonly RedirectRule[];
  readonly headers: readonly HeaderRule[];
  /** True: `_redirects` asks for the start page at every address without a file. */
  readonly spa: boolean;
  readonly notApplied: readonly RuleNotApplied[];
};

/** `line` is undefined for a whole file. */
export type RuleNotApplied = Omit<RuleProblem, 'line'> & {
  readonly file: string;
  readonly line: number | undefined;
};

/** The text of a file that is at most `maxRulesBytes` long, by its digest. */
type TextOf = (digest: string) => Promise<string> | string;

/** Whether a file may hold rules: at its own path, or after the top folder of `first`, the first file, is left out. */
export function mayHoldRules(path: string, first: string): boolean {
  const folder = first.slice(0, first.indexOf('/') + 1);
  const name = folder !== '' && path.startsWith(folder) ? path.slice(folder.length) : path;
  return name === redirectsFile || name === headersFile;
}

export async function rulesIn(files: Manifest, textOf: TextOf): Promise<VersionRules> {
  const isTooLarge = (file: string) => (files.get(file)?.size ?? 0) > maxRulesBytes;
  const textIn = async (file: string) => {
    const blob = files.get(file);
    return blob === undefined || isTooLarge(file) ? '' : await textOf(blob.digest);
  };
  const redirects = parseRedirects(await textIn(redirectsFile));
  const headers = parseHeaders(await textIn(headersFile));
  const notAppliedIn = (file: string, problems: readonly RuleProblem[]): RuleNotApplied[] =>
    isTooLarge(file)
      ? [{ file, line: undefined, problem: `is larger than ${maxRulesBytes} bytes` }]
      : problems.map((one) => ({ file, ...one }));
  return {
    redirects: redirects.rules,
    headers: headers.rules,
    spa: redirects.spa,
    notApplied: [
      ...notAppliedIn(redirectsFile, redirects.problems),
      ...notAppliedIn(headersFile, headers.problems),
    ],
  };
}
