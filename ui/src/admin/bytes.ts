/** Sizes as people read them; powers of 1024, as the limits are counted. */
const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

export function inBytes(bytes: number): string {
  const step = Math.min(units.length - 1, bytes < 1 ? 0 : Math.floor(Math.log2(bytes) / 10));
  const amount = bytes / 1024 ** step;
  const digits = step === 0 || amount >= 100 || Number.isInteger(amount) ? 0 : 1;
  return `${amount.toLocaleString(undefined, { maximumFractionDigits: digits })} ${bytes === 1 ? 'byte' : units[step]}`;
}
