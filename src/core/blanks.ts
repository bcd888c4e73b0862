/**
 * Without spaces and tabs at both ends (OWS, RFC 9110 section 5.6.3). Works by index: a pattern anchored at the end would
 * scan a long run of blanks again and again.
 */
export function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
