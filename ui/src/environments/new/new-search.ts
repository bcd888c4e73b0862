/** Initial values of the form, from the page of a repository or a link in a deploy. */
export type NewSearch = { readonly repository?: string; readonly branch?: string };

export function newSearch(raw: Record<string, unknown>): NewSearch {
  const { repository, branch } = raw;
  return {
    ...(typeof repository === 'string' && repository !== '' ? { repository } : {}),
    ...(typeof branch === 'string' && branch !== '' ? { branch } : {}),
  };
}
