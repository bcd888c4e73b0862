/** “1 file”, “2,000 files”. `many`: the plural, when it is more than an added s. */
export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${nounOf(count, one, many)}`;
}

/** “file” for 1, “files” for any other number and for one that is not known yet. */
export function nounOf(count: number | undefined, one: string, many = `${one}s`): string {
  return count === 1 ? one : many;
}

/** The first page of a list, which says how many there are. */
export type Counted = { readonly metadata: { readonly pagination: { readonly items: number } } };

export function itemsOf(page: Counted | undefined): number | undefined {
  return page?.metadata.pagination.items;
}
