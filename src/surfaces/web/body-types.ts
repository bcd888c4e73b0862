import type { FastifyRequest } from 'fastify';
import { AppError } from '../../core/errors.ts';
import { maskKeys } from '../../core/key-shape.ts';
import type { UploadType } from '../../platform/http.ts';

/** Which bodies a route takes, and the error for any other. */

/** Exact, because lenient matching once let bodies bypass validation (PB-07). */
export function isJson({ headers }: FastifyRequest): boolean {
  return /^application\/json(?: *; *charset="?utf-8"?)?$/i.test(headers['content-type'] ?? '');
}

/** Whether the body of a request is one that its route takes unparsed. */
export function isUpload({ headers, routeOptions }: FastifyRequest): boolean {
  const type = (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase();
  return uploadsOf(routeOptions).some((one) => one === type);
}

/** Content types that a route of the API, or a page, takes unparsed. */
function uploadsOf({ config }: FastifyRequest['routeOptions']): readonly UploadType[] {
  return config.uploads ?? config.route?.uploads ?? [];
}

/** A route that takes uploads takes JSON only where it has a schema for it. */
export function takesJson({ routeOptions }: FastifyRequest): boolean {
  return uploadsOf(routeOptions).length === 0 || routeOptions.config.route?.body !== undefined;
}

export function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** 415, with what was sent and what the route takes. */
export function unsupportedType(request: FastifyRequest): AppError {
  const uploads = request.routeOptions === undefined ? [] : uploadsOf(request.routeOptions);
  const types = [...uploads, ...(takesJson(request) ? ['application/json'] : [])];
  const sent = request.headers['content-type'];
  const what =
    sent === undefined || sent === ''
      ? 'The request has no Content-Type'
      : `The request has Content-Type ${maskKeys(sent.slice(0, 100))}`;
  const [first = ''] = types.filter((type) => type !== 'multipart/form-data');
  return new AppError('unsupported_media_type', {
    message: `${what}; this route accepts ${new Intl.ListFormat('en', { type: 'disjunction' }).format(types)}.`,
    hint: `State the type of the body in the header, such as "Content-Type: ${first}".`,
    details: { accepted: types },
  });
}
