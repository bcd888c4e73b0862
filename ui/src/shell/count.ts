/** “1 file”, “2,000 files”. `many`: the plural, when it is more than an added s. */
export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}
