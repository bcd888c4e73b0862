import { createHash } from 'node:crypto';
import Fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import { sampleRoutes } from '../../../../test/sample-routes.ts';
import { errorCodes } from '../../../core/errors.ts';
import { exchangeRoute } from '../../../features/federation/routes.ts';
import { buildOpenApi } from '../openapi/openapi.ts';
import { html } from '../html.ts';
import { inline, json } from './prose.ts';
import { referencePage, renderReference } from './reference.ts';
import { sampleOf } from './sample.ts';
import { typeOf } from './schema-table.ts';

const document = buildOpenApi({
  routes: [...sampleRoutes, exchangeRoute({ exchanges: { exchange: () => Promise.reject(new Error()) } })],
  version: '1.2.3',
  serverUrl: 'https://postern.example',
});
const page = renderReference(document);

describe('the API reference', () => {
  test('runs only its own script, loads nothing from other origins and refuses to be framed', async () => {
    const app = Fastify();
    await app.register(async (scope) => referencePage(() => document)(scope));
    const answer = await app.inject({ url: '/api/v2/docs' });
    expect(answer.statusCode).toBe(200);
    const policy = String(answer.headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(answer.body).not.toMatch(/<script |<link|<img|\son\w+=|\sstyle=|javascript:|url\(/i);
    const script = /<script>([\s\S]*?)<\/script>/.exec(answer.body)?.[1] ?? '';
    expect(policy).toContain(`script-src 'sha256-${createHash('sha256').update(script).digest('base64')}'`);
    const style = /<style>([\s\S]*)<\/style>/.exec(answer.body)?.[1] ?? '';
    expect(policy).toContain(`'sha256-${createHash('sha256').update(style).digest('base64')}'`);
  });

  test('says that a value may be null, and samples one that is not', () => {
    expect(typeOf({ type: ['string', 'null'], format: 'date-time' }, {})).toBe('timestamp or null');
    expect(typeOf({ type: ['array', 'null'], items: { type: 'string' } }, {})).toBe(
      'array of strings or null',
    );
    expect(sampleOf({ type: ['integer', 'null'], minimum: 7 }, {})).toBe(7);
  });

  test('has an anchor for every error code and every operation, and no link into nowhere', () => {
    const ids = new Set([...page.matchAll(/\sid="([^"]+)"/g)].map((match) => match[1]));
    for (const code of errorCodes) expect(ids).toContain(code);
    for (const { operationId } of sampleRoutes) expect(ids).toContain(operationId);
    const links = [...page.matchAll(/href="#([^"]+)"/g)].map((match) => match[1]);
    expect(links.filter((link) => !ids.has(link))).toEqual([]);
    expect([...page.matchAll(/\sid="/g)]).toHaveLength(ids.size);
  });

  test('says who may call, which scope, and how, with every credential masked', () => {
    expect(page).toContain('An administrator’s browser session.');
    expect(page).toContain('<code>repos:read</code>');
    expect(page).toContain('Authorization: Bearer $POSTERN_KEY');
    expect(page).toContain('app_pat_••••');
  });
});

describe('a sample', () => {
  const shown = (id: string) => {
    const pre = new RegExp(`id="${id}"[\\s\\S]*?<pre>([\\s\\S]*?)</pre>`).exec(page)?.[1] ?? '';
    return pre.replaceAll('&#39;', "'").replaceAll('&quot;', '"');
  };

  test('of a route for people uses a session in a file and says how to get it', () => {
    expect(shown('listMyKeys')).toBe("curl 'https://postern.example/api/v2/me/tokens' \\\n  -b jar");
    expect(page).toContain('<a href="#session-jar">how to get it</a>');
    expect(page).not.toContain('$SESSION');
  });

  test('names a thing that could exist where its path has a hole', () => {
    expect(shown('revokeKey')).toContain('/api/v2/tokens/kD3f9Q2mZx81');
    expect(page).toContain('The key’s public id, 12 characters, as in lists.');
  });

  test('of a form sends its fields, and shows an answer without the envelope', () => {
    expect(shown('exchangeIdToken')).toContain("--data-urlencode 'audience=9sWm3RtY6bHc'");
    expect(shown('exchangeIdToken')).not.toContain('Content-Type');
    expect(page).toContain('issued_token_type');
    expect(page).not.toContain('A file: <code>application/json</code>');
  });

  test('of a change that needs If-Match says where the value comes from', () => {
    expect(shown('changeKeyPolicy')).toContain('-H "If-Match: $ETAG"');
    expect(page).toContain('<code>ETAG</code> holds the <code>ETag</code> header');
  });
});

describe('text on its way into the page', () => {
  test('is escaped wherever it comes from', () => {
    const hostile = '<script>"x"&\'</script>';
    expect(html`<p title="${hostile}">${[hostile]}</p>`.html).not.toContain('<script');
    expect(inline(`\`${hostile}\``).html).not.toContain('<script');
    expect(json({ [hostile]: hostile }).html).not.toContain('<script');
  });
});
