import { followRedirects, type RedirectRule } from '../serving/site-rules.ts';
import type { Manifest } from './manifest.ts';

/**
 * Content that is allowed but probably not intended. A warning never refuses: the content is published, and the
 * response includes the warning.
 */
export const warningCodes = ['no_start_page'] as const;

export type SiteWarning = {
  readonly code: (typeof warningCodes)[number];
  readonly message: string;
  /** Pages of the site that could be the intended one, nearest to the top first. */
  readonly pages: readonly string[];
};

const maxPages = 100;

export function warningsOf(files: Manifest, redirects: readonly RedirectRule[]): SiteWarning[] {
  if (files.has('index.html') || followRedirects(redirects, '') !== undefined) return [];
  const depth = (path: string) => path.split('/').length;
  const pages = [...files.keys()]
    .filter((path) => /\.html?$/i.test(path))
    .sort((one, other) => depth(one) - depth(other))
    .slice(0, maxPages);
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
