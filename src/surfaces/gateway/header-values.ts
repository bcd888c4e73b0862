import { FastRequest, type HttpRequest } from '../../platform/fast-http/fast-server.ts';

/** Of a header as often as it was sent: Node joins some and drops others. `name` in lower case. */
export function valuesOf(request: HttpRequest, name: string): string[] {
  // Of a plain request no name was sent twice, and no value is a list.
  if (request instanceof FastRequest) {
    const sent = request.headers[name];
    return typeof sent === 'string' ? [sent] : [];
  }
  const { rawHeaders } = request;
  const found: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at];
    if (sent?.length === name.length && sent.toLowerCase() === name) found.push(rawHeaders[at + 1] ?? '');
  }
  return found;
}
