import { expect, test } from 'vitest';
import { mistakeInLink, renderLinks } from './metadata-link.ts';

const values = {
  id: 'env_7bXk2mQ9sTzLr4VnYc3D',
  name: 'search-page',
  repository: 'acme/web.site',
  branch: 'feature/a?b#c&d=e',
  sha: '8c36b1a0f2d94b5e7c6a1f3b8d2e4c5a6b7f8091',
  url: 'https://postern.example.com/e/env_7bXk2mQ9sTzLr4VnYc3D',
  services: new Map([
    ['api', 'https://api-e.example.com'],
    ['jobs', null],
  ]),
};

test.each([
  [
    'https://git.example.com/${environment.repository}/commit/${environment.sha}',
    'https://git.example.com/acme/web.site/commit/8c36b1a0f2d94b5e7c6a1f3b8d2e4c5a6b7f8091',
  ],
  [
    'https://git.example.com/tree/${environment.branch}',
    'https://git.example.com/tree/feature%2Fa%3Fb%23c%26d%3De',
  ],
  [
    'http://logs.example.com:8080?q=${environment.id}&sha=${environment.sha}#${environment.name}',
    'http://logs.example.com:8080/?q=env_7bXk2mQ9sTzLr4VnYc3D&sha=8c36b1a0f2d94b5e7c6a1f3b8d2e4c5a6b7f8091#search-page',
  ],
  [
    'https://qr.example.com/?text=${environment.url}',
    'https://qr.example.com/?text=https%3A%2F%2Fpostern.example.com%2Fe%2Fenv_7bXk2mQ9sTzLr4VnYc3D',
  ],
  [
    'https://qr.example.com/?text=${services.api.url}/docs',
    'https://qr.example.com/?text=https%3A%2F%2Fapi-e.example.com/docs',
  ],
  ['https://docs.example.com', 'https://docs.example.com/'],
  ['https://docs.example.com/$${x}', 'https://docs.example.com/$%7Bx%7D'],
])('%s becomes an address whose values are encoded', (link, url) => {
  expect(mistakeInLink(link)).toBeNull();
  expect(renderLinks([{ id: 'mdl_1', text: 'Source', icon: 'branch', link }], values)).toEqual([
    { text: 'Source', icon: 'branch', url },
  ]);
});

test.each([
  ['javascript:alert(1)', 'must be an http or https address'],
  ['ftp://example.com/', 'must be an http or https address'],
  ['//example.com/', 'must be an http or https address'],
  ['https:\\\\example.com', 'must be an http or https address'],
  ['https://', 'must be an http or https address'],
  ['https://ada:secret@example.com/', 'without a user name'],
  ['https://good.example\\@evil.example/', 'without a user name'],
  ['${environment.url}/docs', 'references only after its host'],
  ['https://${environment.name}.example.com/', 'references only after its host'],
  ['https://example.com${environment.branch}/', 'references only after its host'],
  ['https://example.com:99999/', 'must be an http or https address'],
  ['https://example.com/${environment.brnch}', '${environment.brnch} does not exist. A link can contain'],
  ['https://example.com/${environment.id', 'A ${ has no closing }. A link can contain'],
  ['https://example.com/${services.api.host}', 'do not reach the host and the port of a service'],
  ['https://example.com/${services.api.port}', 'do not reach the host and the port of a service'],
  ['${services.api.url}/docs', 'references only after its host'],
])('%s is no link, with the reason', (link, words) => {
  expect(mistakeInLink(link)).toContain(words);
});

test('a link to a service that the Environment does not have, or that has no URL, is left out', () => {
  const links = ['web', 'api', 'jobs'].map((name) => ({
    id: `mdl_${name}`,
    text: name,
    icon: 'link' as const,
    link: `https://example.com/?of=\${services.${name}.url}`,
  }));
  expect(renderLinks(links, values).map(({ text }) => text)).toEqual(['api']);
});
