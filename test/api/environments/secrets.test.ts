import { afterAll, beforeAll, expect, test } from 'vitest';
import { openShop, page, type Shop } from './shop.ts';

/** Values of the secrets that postern.yaml references. The files of the repository repeat them, as a careless team does. */
const values = { api: 'value of the api', build: 'value of the build', lines: 'first line\nsecond line' };
const printed = [values.api, values.build, Buffer.from(values.api).toString('base64'), 'second line'];

const file = `version: 1
services:
  docs:
    build: { image: 'node:24', command: cat printed.txt && mkdir -p dist && cp index.html dist, output: dist }
    static: {}
  site:
    build:
      { image: 'node:24', command: mkdir -p out && cp index.html out, output: out, secrets: { TOKEN: build-token } }
    static: {}
  back:
    build: { image: 'node:24', inputs: [server.js, printed.txt] }
    run: { command: cat printed.txt && node server.js, port: 9090 }
  api:
    build: { image: 'node:24', inputs: [server.js] }
    run: { command: node server.js, port: 8080 }
    secrets: { TOKEN: api-token, PAIR: lines }
`;
const files = {
  'postern.yaml': file,
  'index.html': page('shop'),
  'printed.txt': printed.map((one) => `It is ${one}.\n`).join(''),
  'server.js': "require('node:http').createServer((q, r) => r.end('ok')).listen(process.env.PORT);",
};

let shop: Shop;
beforeAll(async () => {
  shop = await openShop();
  shop.storeSecret('api-token', values.api);
  shop.storeSecret('build-token', values.build);
  shop.storeSecret('lines', values.lines);
  shop.repository.commit(files, 'main');
  shop.repository.commit({}, 'feature');
});
afterAll(() => shop.close());

type Line = { readonly service: string; readonly text: string };

async function deployed(branch: string) {
  const { id } = (await shop.create({ branch, access: 'members' })).data;
  const { status } = await shop.settle(id);
  const [build] = (await shop.call('GET', '/builds', { query: { environment: id } })).data;
  const linesOf = async (path: string, service: string): Promise<string[]> => {
    const { data } = await shop.call('GET', path, { query: { service, limit: '1000' } });
    return data.filter((line: Line) => line.text.startsWith('It is')).map(({ text }: Line) => text);
  };
  return {
    status,
    id,
    inBuild: () => linesOf(`/builds/${build.id}/logs`, 'docs'),
    atRunTime: () => linesOf(`/environments/${id}/logs`, 'back'),
  };
}

test('a secret of one service, or of its build, is in no log of another service of the Environment', async () => {
  const { status, inBuild, atRunTime } = await deployed('main');
  expect(status).toBe('deployed');
  const redacted = printed.map(() => 'It is [redacted].');
  expect(await inBuild()).toEqual(redacted);
  expect(await atRunTime()).toEqual(redacted);
});

test('a branch that may not use the secrets cannot find their values by guessing', async () => {
  const guesses = printed.map((one) => `It is ${one}!`);
  shop.repository.commit({ 'printed.txt': guesses.join('\n') }, 'feature');
  const { status, inBuild } = await deployed('feature');
  expect(status).toBe('error');
  expect(await inBuild()).toEqual(guesses);
});

test('a new value of a secret is in no later log line of another service either', async () => {
  shop.repository.commit({ 'printed.txt': 'It is the next value.\n' }, 'main');
  const { id, atRunTime } = await deployed('main');
  expect(await atRunTime()).toEqual(['It is the next value.']);
  shop.storeSecret('api-token', 'the next value');
  await shop.call('POST', `/environments/${id}/deploy`, { body: {} });
  await shop.settle(id);
  expect(await atRunTime()).toEqual(['It is the next value.', 'It is [redacted].']);
});
