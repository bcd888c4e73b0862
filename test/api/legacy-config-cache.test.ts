import { afterAll, beforeAll, expect, test } from 'vitest';
import { legacyConfigCachePath } from '../../src/surfaces/web/pages/legacy-config-cache.ts';
import { type Harness, openHarness, type Person, uiOrigin } from '../harness.ts';

/** `GET, PUT /api/v1/config/cache`, as clients of the older system call it. */
let h: Harness;
let root: Person;
let ada: Person;
beforeAll(async () => {
  h = await openHarness();
  [root, ada] = [await h.person('Root', { admin: true }), await h.person('Ada')];
});
afterAll(() => h.close());

async function ask(method: 'GET' | 'PUT' | 'POST', headers: Record<string, string>) {
  const {
    statusCode,
    body,
    headers: sent,
  } = await h.app.web.inject({
    method,
    url: legacyConfigCachePath,
    headers,
  });
  return { status: statusCode, body: JSON.parse(body) as unknown, headers: sent };
}

const asPerson = ({ cookie }: Person) => ({ cookie: `__Host-postern_session=${cookie}` });
const ofOwnPage = (person: Person) => ({ ...asPerson(person), origin: uiOrigin });

test('an administrator reads every configuration document by its name, as its route answers it', async () => {
  const { data: sites } = await h.call('GET', '/config/sites', { as: root });
  const answers = [await ask('GET', asPerson(root)), await ask('PUT', ofOwnPage(root))];
  for (const { status, body, headers } of answers) {
    expect(status).toBe(200);
    expect(body).toMatchObject({ configs: { sites } });
    expect(Object.keys((body as { configs: object }).configs).toSorted()).toEqual([
      'access',
      'api-environments',
      'api-keys',
      'mcp',
      'sites',
    ]);
    expect(headers['deprecation']).toMatch(/^@\d+$/);
    expect(headers['link']).toBe('</api/v2/config/surfaces>; rel="successor-version"');
    expect(headers['cache-control']).toBe('no-store');
  }
});

test('other callers do not, and a page of another origin changes nothing', async () => {
  const { value } = await h.key(root, { scopes: ['sites:read'] });
  const refused = [
    await ask('GET', {}),
    await ask('GET', asPerson(ada)),
    await ask('GET', { authorization: `Bearer ${value}` }),
    await ask('PUT', { ...asPerson(root), origin: 'https://elsewhere.example' }),
  ];
  expect(refused.map(({ status }) => status)).toEqual([401, 403, 403, 403]);
  for (const { body } of refused) expect(body).toEqual({ error: expect.any(String) as string });
});

test('another method is 405, and the answer lists the allowed ones', async () => {
  const { status, headers, body } = await ask('POST', asPerson(root));
  expect([status, headers['allow'], body]).toEqual([405, 'GET, PUT', { error: 'Use GET or PUT.' }]);
});
