import type { IncomingMessage } from 'node:http';

/** Of a header as often as it was sent: Node joins some and drops others. `name` in lower case. */
export function valuesOf({ rawHeaders }: IncomingMessage, name: string): string[] {
  const found: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at];
    if (sent?.length === name.length && sent.toLowerCase() === name) found.push(rawHeaders[at + 1] ?? '');
  }
  return found;
}
