import { isIP } from 'node:net';

/**
 * The bucket in which an address is throttled. An IPv6 customer has at least a /64, so those 2⁶⁴ addresses are one bucket.
 * An IPv4 address inside IPv6 (::ffff:192.0.2.1) is the IPv4 address. All texts that are not addresses share one bucket.
 */
export function addressBucket(address: string | null): string {
  if (address === null) return 'unknown';
  const family = isIP(address);
  if (family === 4) return address;
  if (family === 0) return 'unknown';
  const written = fourGroups.exec(address);
  if (written !== null) return `${written[0]}:/64`;
  const mapped = mappedAddress.exec(address);
  if (mapped?.[1] !== undefined) return mapped[1];
  const [front = '', back = ''] = address.split('::');
  const head = front === '' ? [] : front.split(':');
  const tail = back === '' ? [] : back.split(':');
  // `::` replaces as many zero groups as are missing to eight (RFC 4291 section 2.2).
  const group = (index: number) => canonical(head[index] ?? tail[index - (8 - tail.length)] ?? '0');
  return `${group(0)}:${group(1)}:${group(2)}:${group(3)}::/64`;
}

/** The usual form, already canonical. It needs no further parsing, which matters in a flood. */
const fourGroups = /^(?:(?:0|[1-9a-f][\da-f]{0,3}):){4}/;
const mappedAddress = /^::ffff:([\d.]+)$/i;

/** `0DB8` and `db8` are the same group. */
function canonical(group: string): string {
  return Number.parseInt(group, 16).toString(16);
}
