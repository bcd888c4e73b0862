// @module-tag sql
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openShop, type Shop } from './shop.ts';

let shop: Shop;
beforeAll(async () => {
  shop = await openShop();
  await shop.change({ allowedAccess: ['owner', 'members', 'public'] });
});
afterAll(() => shop.close());

const change = (id: string, body: object) => shop.call('PATCH', `/environments/${id}`, { body });

async function deploy(id: string) {
  await shop.call('POST', `/environments/${id}/deploy`, { body: {} });
  return await shop.settle(id);
}

test('the next deploy merges choices for services by name, and replaces env and initEnv', async () => {
  const file = `version: 1
services:
  web:
    build: { image: 'node:24', command: 'mkdir -p dist && echo "$A,$B,$C,$D,$DOCS" >dist/index.html', output: dist }
    static: {}
    env: { DOCS: '\${services.docs.url}' }
  extra:
    build: { directory: extra }
    static: {}
  docs:
    external: { url: 'https://docs.example.com' }
`;
  shop.repository.commit({ 'postern.yaml': file, 'extra/index.html': 'extra' }, 'choices');
  const { data } = await shop.create({
    branch: 'choices',
    access: 'public',
    env: { A: 'a', B: 'b' },
    initEnv: { C: 'c' },
    services: [
      { name: 'extra', active: false },
      { name: 'docs', branchOrExternalUrl: 'https://one.example.com' },
    ],
  });
  const { services } = await shop.settle(data.id);
  const url = services.find(({ name }: { name: string }) => name === 'web').url;
  const opened = async () => (await shop.fetch(`${url}/`)).body;
  type Row = { name: string; url: string | null; active: boolean };
  const rows = (environment: { services: Row[] }) =>
    Object.fromEntries(
      environment.services.map((row) => [row.name, row.name === 'docs' ? row.url : row.active]),
    );
  expect(await opened()).toBe('a,b,c,,https://one.example.com\n');

  const changed = await change(data.id, {
    services: [{ name: 'docs', branchOrExternalUrl: 'https://two.example.com' }],
    env: { B: 'other' },
    initEnv: { D: 'd' },
  });
  expect(changed.status).toBe(200);
  expect(await opened()).toBe('a,b,c,,https://one.example.com\n');
  const two = { web: true, docs: 'https://two.example.com' };
  expect(rows(await deploy(data.id))).toEqual({ ...two, extra: false });
  expect(await opened()).toBe(',other,,d,https://two.example.com\n');

  await change(data.id, { services: [{ name: 'extra', active: true }] });
  expect(rows(await deploy(data.id))).toEqual({ ...two, extra: true });
  expect(await opened()).toBe(',other,,d,https://two.example.com\n');
});

test('after a change of access, services that read an address are deployed again with the new one', async () => {
  const file = `version: 1
services:
  web:
    build: { image: 'node:24', command: 'mkdir -p dist && echo "$OWN" >dist/index.html', output: dist }
    static: {}
    env: { OWN: '\${environment.url}' }
`;
  shop.repository.commit({ 'postern.yaml': file }, 'addresses');
  const { data } = await shop.create({ branch: 'addresses', access: 'members' });
  const before = await shop.settle(data.id);
  await change(data.id, { access: 'public' });
  const { status, services } = await shop.settle(data.id);
  const [{ url }] = services;
  expect(status).toBe('deployed');
  expect(url).not.toBe(before.services[0].url);
  expect((await shop.fetch(`${url}/`)).body).toBe(`${url}\n`);
});

test('with stored secrets, variables and URLs cannot be chosen once the file was read', async () => {
  const file = `version: 1
services:
  api:
    build: { image: 'node:24', secrets: { NPM_TOKEN: npm } }
    run: { command: node server.js, port: 80 }
    secrets: { TOKEN: api-token }
`;
  shop.repository.commit({ 'postern.yaml': file }, 'secretive');
  const { data } = await shop.create({ branch: 'secretive', deployEnabled: false });
  expect((await change(data.id, { env: { TOKEN: 'x' } })).status).toBe(200);
  expect((await change(data.id, { env: {}, deployEnabled: true })).status).toBe(200);
  await deploy(data.id);
  for (const [chosen, name] of [
    [{ env: { TOKEN: 'x' } }, 'TOKEN'],
    [{ initEnv: { OTHER: 'x' } }, 'OTHER'],
    [{ services: [{ name: 'api', branchOrExternalUrl: 'https://api.example.com' }] }, 'api'],
  ] as const) {
    const refused = await change(data.id, chosen);
    expect(refused.status).toBe(422);
    expect(refused.error).toMatchObject({
      code: 'override_not_allowed',
      message: `api uses stored secrets, so nobody can choose variables or URLs for this Environment (${name}).`,
    });
  }
  expect((await change(data.id, { env: {}, services: [{ name: 'api', active: true }] })).status).toBe(200);
});

test('a choice for a service that postern.yaml does not have gets a warning', async () => {
  const { data } = await shop.create();
  await shop.settle(data.id);
  const wrong = await change(data.id, { services: [{ name: 'wbe', active: false }] });
  expect([wrong.status, wrong.data.warnings]).toEqual([
    200,
    ['postern.yaml has no service wbe, so the choice for it does nothing. Did you mean web?'],
  ]);
});
