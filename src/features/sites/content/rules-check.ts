import { text } from 'node:stream/consumers';
import type { Blobs } from '../../../platform/blobs/blobs.ts';
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

/** What the author's own rules say that is not allowed: told at the upload, not by a page that behaves oddly later. */
export async function ruleProblems(files: Manifest, blobs: Pick<Blobs, 'read'>): Promise<UploadProblem[]> {
  return [
    ...(await problemsOf(files, blobs, redirectsFile, parseRedirects)),
    ...(await problemsOf(files, blobs, headersFile, parseHeaders)),
  ].slice(0, 100);
}

async function problemsOf(
  files: Manifest,
  blobs: Pick<Blobs, 'read'>,
  path: string,
  parse: (rules: string) => { readonly problems: readonly RuleProblem[] },
): Promise<UploadProblem[]> {
  const blob = files.get(path);
  if (blob === undefined) return [];
  if (blob.size > longestRules)
    return [{ path, code: 'bad_rule', problem: `is larger than ${longestRules} bytes` }];
  const { problems } = parse(await text(await blobs.read(blob.digest)));
  return problems.map(({ line, problem }) => ({
    path,
    code: 'bad_rule',
    problem: `line ${line}: ${problem}`,
  }));
}
