import { bodyText, type Fetch } from '../provider/in-process.ts';

/** A provider of OpenID Connect does not send its clients elsewhere: a redirect is an answer that is no good. */
export const overNetwork: Fetch = (url, { method, headers, body, signal }) =>
  fetch(url, {
    method,
    headers,
    redirect: 'manual',
    signal: signal ?? null,
    ...(body === undefined || body === null ? {} : { body: bodyText(body) }),
  });
