import { expect } from 'vitest';
import { createVisitor, type Reply, type Visitor } from '../../src/operations/drill/visitor.ts';
import { type Harness, type Person, uiOrigin } from '../harness.ts';
import { type Files, upload } from '../api/sites/uploads.ts';

export { navigation, subresource } from '../../src/operations/drill/visitor.ts';

type Shown = Reply & { readonly headers: Record<string, string>; readonly setCookies: readonly string[] };

export const grantCookie = '__Host-postern_grant';
export const browserCookie = '__Host-postern_browser';

export async function privateSite(
  h: Harness,
  as: Person,
  files: Files = { 'index.html': '<!doctype html><title>secret</title>the secret page', 'a.css': 'p{}' },
): Promise<{ id: string; url: string; link: string; label: string }> {
  const made = await upload(h, as, files, { visibility: 'private' });
  expect(made.status).toBe(201);
  const { id, url, link } = made.data;
  return { id, url, link, label: new URL(url).host.split('.', 1)[0] ?? '' };
}

/** A person's browser, signed in, at the harness. */
export type Browser = Visitor<Shown>;

export function browserOf(h: Pick<Harness, 'call' | 'open'>, person: Person): Browser {
  return createVisitor<Shown>(uiOrigin, async (method, url, { headers, body }) => {
    if (url.startsWith(`${uiOrigin}/`)) {
      if (body !== undefined) throw new Error('A body to the web app is not sent here: use h.call().');
      const path = url.slice(uiOrigin.length);
      const { status, text } = await h.call(method, path, { as: person, headers });
      return { status, text, headers: {}, setCookies: [] };
    }
    const answer = await h.open(url, {
      method: method as 'GET' | 'POST',
      headers,
      ...(body === undefined ? {} : { body: body.toString() }),
    });
    return {
      status: answer.statusCode,
      text: answer.payload,
      headers: answer.headers as Record<string, string>,
      setCookies: [answer.headers['set-cookie'] ?? []].flat().map(String),
    };
  });
}
