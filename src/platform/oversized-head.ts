/**
 * True when cookies make the head of a request too large. Where UI and content share a domain, a hosted page can set more
 * cookies for both than the server reads, and the browser would be locked out until they are gone (threat T32). A head
 * that is too large because of its address must not remove cookies, or any page could sign people out with a link.
 */
export function hasTooManyCookies(error: Error & { code?: string }): boolean {
  // The last piece of the head that arrived: a head may arrive in several, cut anywhere.
  const packet: unknown = Reflect.get(error, 'rawPacket');
  return error.code === 'HPE_HEADER_OVERFLOW' && Buffer.isBuffer(packet) && isBehindAddress(packet);
}

/** A piece with a request line that is longer has no room for cookies. */
const maxTarget = 8_000;

/**
 * Whether the request line ended before the head became too large. An address contains no blank (RFC 9112 section 3.2), and
 * the line of its end has nothing but the version behind it. Where the piece could be the middle of an address or of a cookie,
 * it is taken for an address.
 */
function isBehindAddress(packet: Buffer): boolean {
  const text = packet.toString('latin1');
  const lineEnd = text.indexOf('\r\n');
  const line = lineEnd === -1 ? text : text.slice(0, lineEnd);
  const whole = /^[A-Z]+ (\S*) HTTP\/1\.\d$/.exec(line)?.[1];
  if (whole !== undefined) return whole.length < maxTarget;
  const isAddress = /^(?:[A-Z]+ )?\S*$/.test(line) && lineEnd === -1;
  return !isAddress && !/^\S* HTTP\/1\.\d$/.test(line);
}
