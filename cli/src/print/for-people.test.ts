import { expect, test } from 'vitest';
import { forPeople, inWords } from './for-people.ts';
import { resultText } from './output.ts';

const now = Date.parse('2026-01-10T12:00:00.000Z');
const terminal = { isJson: false, fields: undefined, columns: 200, isColored: false, now };
const site = {
  id: 'k3v9x0q2m7',
  name: 'Handbook',
  url: 'https://p-x.sites.example.com/',
  link: 'https://postern.example.com/s/k3v9x0q2m7',
  visibility: 'private',
  status: 'active',
  expiresAt: '2026-01-13T13:00:00.000Z',
  sizeBytes: 12,
};

test('on a terminal, sites have six columns, a distance for the expiry, and the link where it is private', () => {
  const result = { data: [site], people: forPeople('sites list', [site]), columns: Object.keys(site) };
  expect(resultText(result, terminal)).toBe(
    [
      'NAME      ID          VISIBILITY  STATUS  EXPIRES    ADDRESS',
      'Handbook  k3v9x0q2m7  private     active  in 3 days  https://postern.example.com/s/k3v9x0q2m7\n',
    ].join('\n'),
  );
});

test('a pipe, --json and --fields have the data as it is', () => {
  const result = { data: [site], people: forPeople('sites list', [site]), columns: ['id', 'expiresAt'] };
  expect(resultText(result, { ...terminal, columns: null })).toBe('k3v9x0q2m7\t2026-01-13T13:00:00.000Z\n');
  expect(JSON.parse(resultText(result, { ...terminal, isJson: true })).data).toEqual([site]);
  expect(resultText(result, { ...terminal, fields: ['expiresAt'] })).toContain('2026-01-13T13:00:00.000Z');
});

test('an Environment is named by its branch, and no list has more than six columns', () => {
  const environment = {
    id: 'env_1',
    uuid: 'main-x',
    namespace: 'ns',
    branch: 'main',
    repository: 'acme/shop',
  };
  const [row] = forPeople('env list', [environment]) as object[];
  expect(Object.keys(row ?? {})).toEqual(['name', 'repository', 'branch', 'status', 'lease ends']);
  const wide = Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`f${at}`, 'x']));
  const text = resultText({ data: [wide], columns: Object.keys(wide) }, terminal);
  expect(text.split('\n')[0]).toBe('F0  F1  F2  F3  F4  F5');
});

test('whoami names the account that is signed in', () => {
  const data = {
    principal: { kind: 'user', id: 'usr_1', name: 'Ada' },
    authMethod: 'api_key',
    keyType: 'personal',
    keyName: 'ci',
    scopes: ['sites:write'],
    effectiveScopes: ['sites:write', 'sites:read'],
    repositories: { mode: 'all' },
    expiresAt: null,
    roles: ['user'],
    rateLimit: { limit: 1 },
  };
  expect(resultText({ data, people: forPeople('whoami', data) }, terminal)).toBe(
    [
      'name            Ada',
      'signed in with  the personal key ci',
      'scopes          sites:write sites:read',
      'repositories    all',
      'roles           user\n',
    ].join('\n'),
  );
});

test('whoami says that a job signed in with its ID token', () => {
  const data = {
    principal: { name: 'deploys' },
    authMethod: 'federated',
    keyType: 'service',
    keyName: 'deploys',
  };
  expect(forPeople('whoami', data)).toMatchObject({
    'signed in with': 'an ID token for the service key deploys',
  });
});

test.each([
  ['2026-01-10T12:00:30.000Z', 'now'],
  ['2026-01-10T10:59:00.000Z', '1 hour ago'],
  ['2026-01-10T12:05:00.000Z', 'in 5 minutes'],
  ['2026-06-01T00:00:00.000Z', '2026-06-01'],
])('%s is %s', (time, words) => {
  expect(inWords(time, now)).toBe(words);
});
