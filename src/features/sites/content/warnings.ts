import { createHash } from 'node:crypto';
import { setImmediate as othersFirst } from 'node:timers/promises';
import { safeText } from '../../../core/safe-text.ts';
import { followRedirects } from './site-rules.ts';
import type { Site } from '../site/site.ts';
import type { LeftOut } from './judge.ts';
import type { Manifest } from './manifest.ts';
import { maxListed, type VersionReport } from './report.ts';
import { deepest, foldedForm } from './paths.ts';
import type { RuleNotApplied, VersionRules } from './version-rules.ts';

/**
 * Content that is allowed but probably not intended. A warning never refuses: the content is published, and the
 * response includes the warning.
 */
export const warningCodes = [
  'no_start_page',
  'rule_not_applied',
  'similar_names',
  'broken_links',
  'absolute_paths',
  'mixed_content',
] as const;

export type SiteWarning = {
  readonly code: (typeof warningCodes)[number];
  readonly message: string;
  /** Pages of the site that could be the intended one, nearest to the top first. */
  readonly pages: readonly string[];
  /** True: the warning concerns the version while its site is private. */
  readonly onlyPrivate?: true;
};

export type SiteReport = VersionReport & {
  readonly warnings: readonly SiteWarning[];
  readonly leftOut: readonly LeftOut[];
};

const maxPages = 100;
/** Names compared before other tasks get a turn. */
const namesAtOnce = 100;
/** Lines of `_redirects` and `_headers` that the warnings name. */
const maxLines = 50;

export async function warningsOf(files: Manifest, rules: VersionRules): Promise<SiteWarning[]> {
  return [...withoutStartPage(files, rules), ...linesNotApplied(rules), ...(await similarNames(files))];
}

/** Mistakes in pages, for a dry run: no version exists whose report could list them. */
export function pageWarnings(report: VersionReport): SiteWarning[] {
  return [
    ...pageWarning('broken_links', 'Broken links', report.brokenLinks),
    ...pageWarning('absolute_paths', 'Addresses that work only elsewhere', report.absolutePaths),
    ...pageWarning('mixed_content', 'Parts over plain http', report.mixedContent),
  ];
}

function pageWarning(
  code: SiteWarning['code'],
  title: string,
  found: VersionReport['brokenLinks'],
): SiteWarning[] {
  const [first] = found;
  if (first === undefined) return [];
  const target = first.target.replace(/[\p{Cc}\p{Cf}]/gu, '').slice(0, 200);
  const count = found.length >= maxListed ? `${found.length} or more` : found.length;
  return [{ code, message: `${title}: ${count}, such as ${target} in ${first.page}.`, pages: [] }];
}

/** Warnings that concern a site of this visibility. */
export function warningsFor(
  { visibility }: Pick<Site, 'visibility'>,
  warnings: readonly SiteWarning[],
): SiteWarning[] {
  return warnings.filter(({ onlyPrivate }) => onlyPrivate !== true || visibility === 'private');
}

async function similarNames(files: Manifest): Promise<SiteWarning[]> {
  const first = new Map<string, string>();
  let [seen, similar] = [0, 0];
  let example: readonly string[] | undefined;
  for (const path of files.keys()) {
    if (seen % namesAtOnce === 0) await othersFirst();
    seen += 1;
    const key = foldedName(path);
    const other = first.get(key);
    if (other === undefined) {
      first.set(key, path);
      continue;
    }
    similar += 1;
    example ??= [other, path];
  }
  if (example === undefined) return [];
  const pair = example.map((path) => (path.length > 200 ? `${path.slice(0, 200)}…` : path)).join(' and ');
  const names = similar === 1 ? pair : `${similar} pairs of names, such as ${pair},`;
  const message = `${names} differ only in case, or look the same. Postern serves both, but a copy on Windows or macOS may hold only one.`;
  return [{ code: 'similar_names', message, pages: [] }];
}

const maxFolded = 64;

/** A digest stands for a long form: U+FDFA alone becomes 18 characters, and the names of an upload are compared all at once. */
export function foldedName(path: string): string {
  const form = foldedForm(path);
  return form.length <= maxFolded ? form : createHash('sha256').update(form).digest('base64');
}

function linesNotApplied({ notApplied }: VersionRules): SiteWarning[] {
  const warnings = notApplied.slice(0, maxLines).map(ruleWarning);
  const more = notApplied.length - maxLines;
  if (more <= 0) return warnings;
  const message = `${more === 1 ? '1 more line' : `${more} more lines`} of _redirects and _headers ${more === 1 ? 'is' : 'are'} not applied.`;
  return [...warnings, { code: 'rule_not_applied', message, pages: [] }];
}

function ruleWarning({ file, line, problem, onlyPrivate }: RuleNotApplied): SiteWarning {
  const place = line === undefined ? `The file ${file}` : `Line ${line} of ${file}`;
  // The problem can quote the line.
  const message = safeText(`${place} is not applied as it is written: it ${problem}.`);
  return { code: 'rule_not_applied', message, pages: [], ...(onlyPrivate ? { onlyPrivate } : {}) };
}

function withoutStartPage(files: Manifest, { redirects }: VersionRules): SiteWarning[] {
  if (files.has('index.html') || followRedirects(redirects, '') !== undefined) return [];
  const byDepth = Array.from({ length: deepest + 1 }, (): string[] => []);
  for (const path of files.keys()) {
    if (!/\.html?$/i.test(path)) continue;
    const level = byDepth[path.split('/').length];
    if (level !== undefined && level.length < maxPages) level.push(path);
  }
  const pages = byDepth.flat().slice(0, maxPages);
  const [first] = pages;
  const message =
    'The site has no index.html at its top level, so its address shows “Not found”. Add one' +
    (first === undefined ? '.' : `, or add the line “${startRule(first)}” to the file _redirects.`);
  return [{ code: 'no_start_page', message, pages }];
}

/** A temporary redirect, because the next version may have a start page. */
function startRule(page: string): string {
  return `/ /${page.split('/').map(encodeURIComponent).join('/')} 302`;
}
