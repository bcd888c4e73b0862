import { expect, test } from 'vitest';
import { parseHeaders, parseRedirects } from '../../../src/features/sites/content/site-rules.ts';
import type { HostFile } from './host-rules.ts';
import { fromNetlify } from './netlify.ts';
import { fromVercel } from './vercel.ts';

/** What the server says about the lines. */
const problems = ({ redirects, headers }: HostFile) => [
  ...parseRedirects(redirects.join('\n')).problems,
  ...parseHeaders(headers.join('\n')).problems,
];
const named = ({ untranslated }: HostFile) => untranslated.map(({ where }) => where);

const netlify = `
[build]
command = "npm run build"
publish = "dist"
functions = "functions"
[build.environment]
NODE_VERSION = "22"
[[redirects]]
from = "/old/*"
to = "/new/:splat"
[[redirects]]
from = "/a/:id"
to = "/b/:id?x=1"
status = 302
force = true
[[redirects]]
from = "/api/*"
to = "https://api.example.com/:splat"
status = 200
[[redirects]]
from = "/de/*"
to = "/de/:splat"
conditions = {Language = ["de"]}
[[redirects]]
from = "https://old.example.com/*"
to = "/:splat"
[[redirects]]
from = "/*"
to = "/index.html"
status = 200
[[headers]]
for = "/*"
[headers.values]
X-Robots-Tag = "noindex"
Referrer-Policy = "unsafe-url"
X-Frame-Options = "DENY"
X-XSS-Protection = "1"
Permissions-Policy = "fullscreen=(), camera=()"
[[plugins]]
package = "x"
`;

test('netlify.toml: redirects, headers and the single page, and the rest is named', () => {
  const file = fromNetlify(netlify);
  expect(file).toMatchObject({
    redirects: ['/old/* /new/:splat 301', '/a/:id /b/:id?x=1 302'],
    headers: [
      '/*',
      '  X-Robots-Tag: noindex',
      '  X-Frame-Options: DENY',
      '  Permissions-Policy: fullscreen=(), camera=()',
    ],
    spa: true,
    build: { command: 'npm run build', output: 'dist', node: '22' },
  });
  expect(named(file)).toEqual([
    'redirects[1] force',
    'redirects[2]',
    'redirects[3]',
    'redirects[4]',
    'headers[0] Referrer-Policy',
    'headers[0] X-XSS-Protection',
    'plugins',
    'build.functions',
  ]);
  expect(problems(file)).toEqual([]);
});

test('vercel.json: the same, with its own patterns and statuses', () => {
  const file = fromVercel(
    JSON.stringify({
      buildCommand: 'npm run build',
      outputDirectory: 'out',
      cleanUrls: true,
      trailingSlash: true,
      redirects: [
        { source: '/old/:path*', destination: '/new/:path*' },
        { source: '/docs/(.*)', destination: '/handbook/$1', permanent: false },
        { source: '/post/:id', destination: '/p/:id', statusCode: 301 },
        { source: '/n/:id(\\d+)', destination: '/p/:id' },
        { source: '/x', destination: 'https://example.com' },
        { source: '/y', destination: '/z', has: [{ type: 'host', value: 'a' }] },
        { source: '/a/:slug/:rest*', destination: '/b/:other*' },
      ],
      rewrites: [
        { source: '/(.*)', destination: '/index.html' },
        { source: '/api/(.*)', destination: 'https://api.example.com/$1' },
      ],
      headers: [
        {
          source: '/(.*)',
          headers: [
            { key: 'Content-Language', value: 'de' },
            { key: 'X-A', value: '1' },
          ],
        },
      ],
      crons: [],
    }),
  );
  expect(file).toMatchObject({
    redirects: ['/old/* /new/:splat 308', '/docs/* /handbook/:splat 307', '/post/:id /p/:id 301'],
    headers: ['/*', '  Content-Language: de'],
    spa: true,
  });
  expect(named(file)).toEqual([
    'redirects[3]',
    'redirects[4]',
    'redirects[5]',
    'redirects[6]',
    'rewrites[1]',
    'headers[0] X-A',
    'trailingSlash',
    'crons',
  ]);
  expect(problems(file)).toEqual([]);
});
