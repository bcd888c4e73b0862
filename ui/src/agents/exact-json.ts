/**
 * JSON in which every character is visible. Characters that reorder others or have no shape are escaped: a
 * person who approves a call must see what it holds.
 */
export function exactJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replaceAll(/[^\n\P{C}]|[\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, escaped);
}

function escaped(character: string): string {
  return [...Array(character.length).keys()]
    .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
    .join('');
}
