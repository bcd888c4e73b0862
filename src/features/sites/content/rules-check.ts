import {
  headersFile,
  maxRulesBytes,
  parseHeaders,
  parseRedirects,
  redirectsFile,
  type RuleProblem,
} from '../serving/site-rules.ts';
import type { Manifest } from './manifest.ts';
import type { UploadProblem } from './judge.ts';

/** The text of a file that is at most `maxRulesBytes` long, by its digest. */
type TextOf = (digest: string) => Promise<string> | string;

/** Whether a file may hold rules: at its own path, or after the top folder of `first`, the first file, is left out. */
export function mayHoldRules(path: string, first: string): boolean {
  const folder = first.slice(0, first.indexOf('/') + 1);
  const name = folder !== '' && path.startsWith(folder) ? path.slice(folder.length) : path;
  return name === redirectsFile || name === headersFile;
}

/**
 * Rules of the author that are not allowed. The upload reports them, so that the author need not find them through a
 * page that misbehaves.
 */
export async function ruleProblems(files: Manifest, textOf: TextOf): Promise<UploadProblem[]> {
  return [
    ...(await problemsOf(files, textOf, redirectsFile, parseRedirects)),
    ...(await problemsOf(files, textOf, headersFile, parseHeaders)),
  ];
}

async function problemsOf(
  files: Manifest,
  textOf: TextOf,
  path: string,
  parse: (rules: string) => { readonly problems: readonly RuleProblem[] },
): Promise<UploadProblem[]> {
  const blob = files.get(path);
  if (blob === undefined) return [];
  if (blob.size > maxRulesBytes)
    return [{ path, code: 'bad_rule', problem: `is larger than ${maxRulesBytes} bytes` }];
  const { problems } = parse(await textOf(blob.digest));
  return problems.map(({ line, problem }) => ({
    path,
    code: 'bad_rule',
    problem: `line ${line}: ${problem}`,
  }));
}
