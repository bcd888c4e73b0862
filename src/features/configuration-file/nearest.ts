/** Maximum length of both texts: longer ones are not names, and comparing them would take long. */
const maxLength = 60;

/** “Did you mean web?” when a name differs from the text in a few letters; otherwise null. */
export function didYouMean(text: string, names: readonly string[]): string | null {
  if (text.length > maxLength) return null;
  const found = names
    .filter((name) => name.length <= maxLength)
    .map((name) => ({ name, distance: distanceOf(text.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, distance }) => distance <= Math.max(1, Math.floor(name.length / 3)))
    .toSorted((one, other) => one.distance - other.distance)[0];
  return found === undefined ? null : `Did you mean ${found.name}?`;
}

/** Number of letters to insert, remove, replace, or swap with their neighbour (optimal string alignment). */
function distanceOf(one: string, other: string): number {
  let before: number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let line = 1; line <= one.length; line += 1) {
    const next = [line];
    for (let at = 1; at <= other.length; at += 1) {
      const isSame = one[line - 1] === other[at - 1];
      const isSwapped =
        line > 1 && at > 1 && one[line - 1] === other[at - 2] && one[line - 2] === other[at - 1];
      next[at] = Math.min(
        (next[at - 1] ?? 0) + 1,
        (row[at] ?? 0) + 1,
        (row[at - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (before[at - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    before = row;
    row = next;
  }
  return row[other.length] ?? 0;
}
