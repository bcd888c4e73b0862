/**
 * True when cookies make the head of a request too large. Where UI and content share a domain, a hosted page can set more
 * cookies for both than the server reads, and the browser would be locked out until they are gone (threat T32). A head
 * that is too large because of its address must not remove cookies, or any page could sign people out with a link.
 */
export function hasTooManyCookies(error: Error & { code?: string }): boolean {
  // The last piece of the head that arrived; a head may arrive in several.
  const packet: unknown = Reflect.get(error, 'rawPacket');
  return error.code === 'HPE_HEADER_OVERFLOW' && Buffer.isBuffer(packet) && !isLongAddress(packet);
}

/** A cookie has at most 4,096 bytes and is followed by a blank before the next one; an address contains no blank. */
function isLongAddress(packet: Buffer): boolean {
  return /^(?:[A-Z]+ )?\S{8000}/.test(packet.toString('latin1', 0, 8_100));
}
