import type { PickedFile } from './picked.ts';

/** A site without an index.html can lead its address to another page: a rule that the gateway reads from this file. */
export const redirectsFile = '_redirects';

/** Found, not moved for ever: the next version may have a start page. */
export function startRule(page: string): string {
  return `/ /${page.split('/').map(encodeURIComponent).join('/')} 302`;
}

/** Before all other rules, because the first that fits an address decides. */
export function rulesWith(page: string, others: Blob | string): File {
  return new File([`${startRule(page)}\n`, others], redirectsFile, { type: 'text/plain' });
}

export function withStartRule(files: readonly PickedFile[], page: string): PickedFile[] {
  const own = files.find(({ path }) => path === redirectsFile)?.file ?? '';
  const others = files.filter(({ path }) => path !== redirectsFile);
  return [...others, { path: redirectsFile, file: rulesWith(page, own) }];
}

/** Pages that could be meant, nearest to the top first. */
export function pagesOf(paths: readonly string[]): string[] {
  const depth = (path: string) => path.split('/').length;
  return paths.filter((path) => /\.html?$/i.test(path)).sort((one, other) => depth(one) - depth(other));
}
