import type { IncomingHttpHeaders } from 'node:http';
import { FastRequest, type HttpRequest } from './fast-server.ts';

/**
 * Caches a value that depends on the headers only, for all requests of a connection that repeat them. `read` must not use
 * anything else of the request. Without it a public page of 1 KiB takes 0.3 µs more than its 8.4, a private one 2.1 more than
 * 9.3: P6 misses its floor.
 */
export function oncePerHead<T>(read: (request: HttpRequest) => T): (request: HttpRequest) => T {
  const known = new WeakMap<IncomingHttpHeaders, { readonly found: T }>();
  return (request) => {
    if (!(request instanceof FastRequest)) return read(request);
    const there = known.get(request.headers);
    if (there !== undefined) return there.found;
    const found = read(request);
    known.set(request.headers, { found });
    return found;
  };
}
