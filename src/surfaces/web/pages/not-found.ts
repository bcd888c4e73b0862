import type { FastifyRequest } from 'fastify';
import type { Page } from './layout.ts';
import { errorPage } from './messages.ts';

export function notFoundPage(requestId: string): Page {
  return errorPage({
    title: 'There is no such page',
    message: 'The address may be mistyped, or the page has moved.',
    requestId,
    retry: { href: '/', label: 'Go to the start page' },
  });
}

/** Whether a person reads the response: a browser opens an address outside the API. Programs get the envelope. */
export function isForPerson({
  method,
  url,
  headers,
}: Pick<FastifyRequest, 'method' | 'url' | 'headers'>): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  return !/^\/api(?:[/?]|$)/.test(url) && prefersHtml(headers.accept ?? '');
}

/** HTML is named, and preferred at least as much as JSON; programs without a preference send `*`. */
function prefersHtml(accept: string): boolean {
  const html = wish(accept, 'text/html');
  return html > 0 && html >= wish(accept, 'application/json');
}

/** The weight of a media type in the Accept header (RFC 9110 section 12.5.1); 0 when it is not named. */
function wish(accept: string, type: string): number {
  for (const range of accept.toLowerCase().split(',')) {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim());
    if (name !== type) continue;
    const weight = parameters.find((part) => part.startsWith('q='));
    return weight === undefined ? 1 : Number(weight.slice(2)) || 0;
  }
  return 0;
}
