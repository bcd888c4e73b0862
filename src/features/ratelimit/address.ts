import { isIP } from 'node:net';

/**
 * The bucket an address is throttled in. One IPv6 customer has a /64 at the least, so its 2⁶⁴ addresses are one; an
 * IPv4 address inside IPv6 (::ffff:192.0.2.1) is the IPv4 address. What is not an address shares one bucket.
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
  // `::` stands for as many zero groups as are missing to eight (RFC 4291 section 2.2).
  const group = (index: number) => canonical(head[index] ?? tail[index - (8 - tail.length)] ?? '0');
  return `${group(0)}:${group(1)}:${group(2)}:${group(3)}::/64`;
}

/** The usual form, already canonical: nothing to work out, which matters in a flood. */
const fourGroups = /^(?:(?:0|[1-9a-f][\da-f]{0,3}):){4}/;
const mappedAddress = /^::ffff:([\d.]+)$/i;

/** `0DB8` and `db8` are the same group. */
function canonical(group: string): string {
  return Number.parseInt(group, 16).toString(16);
}
