import { afterAll, beforeAll, expect, test } from 'vitest';
import { upload } from '../sites/uploads.ts';
import { openShop, page, type Shop } from './shop.ts';

const file = `version: 1
services:
  web:
    build:
      image: 'node:24'
      command: "mkdir dist && echo $API_URL > dist/index.html"
      output: dist
    static: {}
    env: { API_URL: "\${services.api.url}" }
  api:
    build: { image: 'node:24', directory: api }
    run: { command: node server.js, port: 8080 }
    env: { OWN: "\${environment.url} \${services.api.url}" }
`;
const server = `require('node:http').createServer((request, response) => response.end(process.env.OWN))
  .listen(process.env.PORT, '127.0.0.1');`;

let shop: Shop;
beforeAll(async () => {
  shop = await openShop('process', { environmentsContentUrl: 'http://branches.localhost:3001' });
  await shop.change({ allowedAccess: ['owner', 'members', 'public'] });
  shop.repository.commit({ 'postern.yaml': file, 'api/server.js': server }, 'own');
});
afterAll(() => shop.close());

test('with a separate domain, an Environment names it in its row, its builds and its processes, and sites do not', async () => {
  const { data } = await shop.create({ branch: 'own', access: 'public' });
  const { services, link, statusMessage } = await shop.settle(data.id);
  const [web, api] = services;
  expect([statusMessage, web.url, api.url]).toEqual([
    null,
    expect.stringMatching(/^http:\/\/web-e[a-z2-7]{17}\.branches\.localhost:3001$/),
    web.url.replace('web-', 'api-'),
  ]);
  expect((await shop.fetch(`${web.url}/`)).body).toBe(`${api.url}\n`);
  expect((await shop.fetch(`${api.url}/`)).body).toBe(`${web.url} ${api.url}`);
  expect(link).toBe(`http://localhost:3000/e/${data.id}`);
  const led = await shop.call('GET', `/e/${data.id}`);
  expect([led.status, led.headers['location']]).toEqual([302, `${web.url}/`]);

  const site = await upload(shop.h, shop.ada, { 'index.html': page('site') }, { visibility: 'public' });
  expect(site.data.url).toMatch(/^http:\/\/[a-z0-9]+\.sites\.localhost:3001\/$/);
  expect((await shop.fetch(site.data.url)).body).toBe(page('site'));
  // The addresses that both would have with one domain.
  for (const url of [web.url.replace('branches', 'sites'), site.data.url.replace('sites', 'branches')])
    expect([url, (await shop.fetch(url)).status]).toEqual([url, 404]);
});
