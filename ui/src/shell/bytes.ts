const units = ['KiB', 'MiB', 'GiB', 'TiB'] as const;

/** “812 bytes”, “1.4 MiB”: powers of 1,024, the units of the limits. */
export function bytesInWords(bytes: number): string {
  if (Math.abs(bytes) < 1_024) return `${bytes} ${Math.abs(bytes) === 1 ? 'byte' : 'bytes'}`;
  let size = bytes;
  let unit = -1;
  while (Math.abs(size) >= 1_023.95 && unit < units.length - 1) {
    size /= 1_024;
    unit += 1;
  }
  return `${size.toLocaleString(undefined, { maximumFractionDigits: Math.abs(size) < 10 ? 1 : 0 })} ${units[unit]}`;
}

/** With a sign, for a difference. */
export function changeInWords(bytes: number): string {
  if (bytes === 0) return 'no change in size';
  return bytes > 0 ? `+${bytesInWords(bytes)}` : `−${bytesInWords(-bytes)}`;
}
