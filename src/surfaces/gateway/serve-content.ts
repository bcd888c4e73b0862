import { resolve, type ServedContent } from '../../features/sites/sites.ts';
import type { Blobs } from '../../platform/blobs/blobs.ts';
import type { HttpRequest, HttpResponse } from '../../platform/fast-http/fast-server.ts';
import { type GatewayAnswer, nothingHere } from './answer.ts';
import type { BlobCache } from './blob-cache.ts';
import type { OpenStream, OpenStreams } from './open-streams.ts';
import { type Kind, siteHeaders } from './response-headers.ts';
import { sendFile, sendRedirect } from './send.ts';

/** What a label counts as in the metrics; `none`: the address belongs to nothing. */
export type Visibility = 'public' | 'private' | 'environment' | 'none';

/** How every request ends. */
export type Answering = {
  finish(request: HttpRequest, response: HttpResponse, answer: GatewayAnswer, visibility?: Visibility): void;
  count(request: HttpRequest, visibility: Visibility, status: number): void;
};

export type Serving = {
  readonly kind: Kind;
  readonly visibility: Visibility;
  readonly stream: OpenStream;
  readonly isDocument: boolean;
  readonly now: number;
};

/** Serves the file of a path, of a site or of a static service: the last step, after all checks. */
export function contentServer(deps: {
  readonly answering: Answering;
  readonly blobs: Pick<Blobs, 'read'>;
  readonly cache: BlobCache;
}) {
  const { finish, count } = deps.answering;
  return (
    request: HttpRequest,
    response: HttpResponse,
    content: ServedContent,
    { kind, visibility, stream, isDocument, now }: Serving,
    streams: OpenStreams,
  ): void | Promise<void> => {
    const { url = '/' } = request;
    const query = url.indexOf('?');
    const found = resolve(content, query < 0 ? url : url.slice(0, query), { isDocument, now });
    if (found.kind === 'missing') return finish(request, response, notFoundOn(kind), visibility);
    count(request, visibility, found.status);
    if (found.kind === 'redirect')
      return sendRedirect(response, kind, { ...found, to: withQuery(found.to, request.url ?? '') });
    // Destroys the connection, because a response that waits behind another has no socket to destroy.
    const onStream = () => streams.enter(() => void response.req.socket.destroy(), stream);
    return sendFile(
      request,
      response,
      { kind, content, file: found.file, status: found.status, onStream },
      deps,
    );
  };
}

/** On private content it carries all the headers that the files carry (threat T22). */
export function notFoundOn(kind: Kind): GatewayAnswer {
  if (!kind.isPrivate) return nothingHere;
  const { 'content-security-policy': policy = '' } = nothingHere.headers;
  const headers = { ...nothingHere.headers, ...headersOfKind(kind), 'content-security-policy': policy };
  return { ...nothingHere, headers };
}

function headersOfKind(kind: Kind): Record<string, string> {
  const list = siteHeaders(kind);
  const pairs = list.flatMap((name, at) => (at % 2 === 0 ? [[name, list[at + 1] ?? ''] as const] : []));
  return Object.fromEntries(pairs);
}

/** Adds the query of the request to a target without one, before its fragment (RFC 3986 section 3). */
function withQuery(to: string, url: string): string {
  const query = url.indexOf('?');
  const hash = to.indexOf('#');
  const end = hash < 0 ? to.length : hash;
  if (query < 0 || to.slice(0, end).includes('?')) return to;
  return to.slice(0, end) + url.slice(query) + to.slice(end);
}
