/** What Postern keeps of an argument that it hides: its size. */
export function hiddenValue(value: unknown): string {
  return `(${sizeOf(value)} characters)`;
}

/** Number of characters of the value as JSON, also when only its size was kept. */
export function charactersOf(kept: unknown): number {
  const [, size] = (typeof kept === 'string' && /^\((\d{1,9}) characters\)$/.exec(kept)) || [];
  return size === undefined ? sizeOf(kept) : Number(size);
}

function sizeOf(value: unknown): number {
  return JSON.stringify(value).length;
}
