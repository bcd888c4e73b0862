import { FastRequest, type HttpRequest } from '../../platform/fast-http/fast-server.ts';
import { valuesIn } from '../../platform/http-lines.ts';

/** All values of a header, in the order they were sent: Node joins some and drops others. `name` in lower case. */
export function valuesOf(request: HttpRequest, name: string): string[] {
  // The fast reader accepts no name twice and no list as a value.
  if (request instanceof FastRequest) {
    const sent = request.headers[name];
    return typeof sent === 'string' ? [sent] : [];
  }
  return valuesIn(request.rawHeaders, name);
}

export function hasBodyIn({ headers }: HttpRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
