/** The stored form of a hidden argument: its size. */
export function hiddenValue(value: unknown): string {
  return `(${sizeOf(value)} characters)`;
}

/** Number of characters of the value as JSON, even if only its size was kept. */
export function charactersOf(kept: unknown): number {
  const [, size] = (typeof kept === 'string' && /^\((\d{1,9}) characters\)$/.exec(kept)) || [];
  return size === undefined ? sizeOf(kept) : Number(size);
}

function sizeOf(value: unknown): number {
  return JSON.stringify(value).length;
}
