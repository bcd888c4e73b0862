/** The part of the Fetch standard that requests to identity providers and external MCP servers use. */
export type Fetch = (url: string, init: FetchInit) => Promise<Response>;
type FetchInit = {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
};

/** Fetch without redirects: an OpenID Connect provider does not redirect its clients, so a redirect is an invalid answer. */
export const networkFetch: Fetch = (url, { method, headers, body, signal }) =>
  fetch(url, {
    method,
    headers,
    redirect: 'manual',
    signal: signal ?? null,
    ...(body === undefined || body === null ? {} : { body: bodyText(body) }),
  });

export function bodyText(body: unknown): string {
  if (typeof body === 'string') return body;
  if (body instanceof URLSearchParams) return body.toString();
  throw new TypeError('Only text and form bodies are sent.');
}
