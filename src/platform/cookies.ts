import { trimBlanks } from '../core/blanks.ts';

/**
 * The cookies of a Cookie header, in the order sent (RFC 6265 section 4.2.1). Only spaces and tabs are trimmed: a name with
 * another Unicode space is a different cookie (CS-06). A part without `=` is no cookie.
 */
export function cookiesIn(header: string | undefined): { readonly name: string; readonly value: string }[] {
  if (header === undefined) return [];
  return header.split(';').flatMap((part) => {
    const at = part.indexOf('=');
    return at < 0 ? [] : [{ name: trimBlanks(part.slice(0, at)), value: trimBlanks(part.slice(at + 1)) }];
  });
}

/** The value of a cookie; undefined when it is missing or sent twice, because a browser sends our cookies once (CS-06). */
export function cookieValue(header: string | undefined, name: string): string | undefined {
  const found = cookiesIn(header).filter((cookie) => cookie.name === name);
  return found.length === 1 ? found[0]?.value : undefined;
}
