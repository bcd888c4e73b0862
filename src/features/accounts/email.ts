/**
 * The canonical form of an e-mail address, for look-ups, throttling and uniqueness: `A` to `Z` become lower case, every
 * other character stays. Unicode's rules for case differ between JavaScript and databases (`\u0130`, `\u212A`), so two
 * spellings could reach one account under two counters. The same in SQL is `lower(email collate "C")`.
 */
export function canonicalEmail(email: string): string {
  return email.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}
