import { bodyText, type Fetch } from '../provider/in-process.ts';

/** Fetch without redirects: an OpenID Connect provider does not redirect its clients, so a redirect is an invalid answer. */
export const networkFetch: Fetch = (url, { method, headers, body, signal }) =>
  fetch(url, {
    method,
    headers,
    redirect: 'manual',
    signal: signal ?? null,
    ...(body === undefined || body === null ? {} : { body: bodyText(body) }),
  });
