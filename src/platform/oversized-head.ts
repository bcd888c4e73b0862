/**
 * Where UI and content share a domain a hosted page can set cookies for both, more than can be read; the browser would
 * be locked out until they are gone (threat T32). An address that is too long takes nothing away, or any page could
 * sign people out with a link.
 */
export function hasTooManyCookies(error: Error & { code?: string }): boolean {
  // What arrived last of the head, which may come in pieces.
  const packet: unknown = Reflect.get(error, 'rawPacket');
  return error.code === 'HPE_HEADER_OVERFLOW' && Buffer.isBuffer(packet) && !isLongAddress(packet);
}

/** A cookie has at most 4,096 bytes, and a blank before the next one; an address has none. */
function isLongAddress(packet: Buffer): boolean {
  return /^(?:[A-Z]+ )?\S{8000}/.test(packet.toString('latin1', 0, 8_100));
}
