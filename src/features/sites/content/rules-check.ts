import {
  headersFile,
  longestRules,
  parseHeaders,
  parseRedirects,
  redirectsFile,
  type RuleProblem,
} from '../serving/site-rules.ts';
import type { Manifest } from './manifest.ts';
import type { UploadProblem } from './judge.ts';

/** The text of a file that is at most `longestRules` long, by its digest. */
type TextOf = (digest: string) => Promise<string> | string;

/** Whether a file may hold rules: where it lies now, or once the folder is left out in which `first` of all files lies. */
export function mayHoldRules(path: string, first: string): boolean {
  const folder = first.slice(0, first.indexOf('/') + 1);
  const name = folder !== '' && path.startsWith(folder) ? path.slice(folder.length) : path;
  return name === redirectsFile || name === headersFile;
}

/** What the author's own rules say that is not allowed: told at the upload, not by a page that behaves oddly later. */
export async function ruleProblems(files: Manifest, textOf: TextOf): Promise<UploadProblem[]> {
  return [
    ...(await problemsOf(files, textOf, redirectsFile, parseRedirects)),
    ...(await problemsOf(files, textOf, headersFile, parseHeaders)),
  ].slice(0, 100);
}

async function problemsOf(
  files: Manifest,
  textOf: TextOf,
  path: string,
  parse: (rules: string) => { readonly problems: readonly RuleProblem[] },
): Promise<UploadProblem[]> {
  const blob = files.get(path);
  if (blob === undefined) return [];
  if (blob.size > longestRules)
    return [{ path, code: 'bad_rule', problem: `is larger than ${longestRules} bytes` }];
  const { problems } = parse(await textOf(blob.digest));
  return problems.map(({ line, problem }) => ({
    path,
    code: 'bad_rule',
    problem: `line ${line}: ${problem}`,
  }));
}
