import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Harness, openHarness, type Person, uiOrigin } from '../../../../test/harness.ts';

let h: Harness;
let ada: Person;
beforeAll(async () => {
  h = await openHarness();
  ada = await h.person('Ada');
});
afterAll(() => h.close());

const everyKind = readFileSync(
  join(import.meta.dirname, '../../configuration-file/golden/every-kind.yaml'),
  'utf8',
);
const validate = (content: unknown, as: Parameters<Harness['call']>[2] = { as: ada }) =>
  h.call('POST', '/schema/validate', { ...as, body: { content } });

describe('POST /schema/validate', () => {
  test('a file without problems is valid', async () => {
    const { status, data } = await validate(everyKind);
    expect([status, data]).toEqual([200, { valid: true, problems: [] }]);
  });

  test('a file with problems is a success that lists them', async () => {
    const { status, data } = await validate('version: 1\nservices:\n  web: { build: {}, statc: {} }\n');
    expect(status).toBe(200);
    expect(data).toEqual({
      valid: false,
      problems: [
        {
          line: 3,
          column: 3,
          path: 'services.web',
          rule: 'kind',
          message: 'web has no kind.',
          fix: 'Add one of static, run, postgres, external.',
        },
        {
          line: 3,
          column: 21,
          path: 'services.web.statc',
          rule: 'unknown_field',
          message: 'statc is not a field of services.web.',
          fix: 'Did you mean static?',
        },
      ],
    });
  });

  test('keys and tokens need repos:read; the answer without it names the scope', async () => {
    const can = await h.key(ada, { scopes: ['repos:read'] });
    const cannot = await h.serviceKey({ scopes: ['env:write'] });
    expect((await validate(everyKind, { as: can })).status).toBe(200);
    const { status, error } = await validate(everyKind, { as: cannot });
    expect([status, error.code, error.details.requiredScope]).toEqual([403, 'forbidden_scope', 'repos:read']);
    expect((await validate(everyKind, {})).status).toBe(401);
  });

  test('a key in the file is a problem with its line, is not repeated, and its owner is notified', async () => {
    const leaked = await h.key(ada, { scopes: ['env:read'] });
    const { status, text, data } = await validate(`version: 1\n# ${leaked.value}\n`);
    expect(status).toBe(200);
    expect(data.problems).toContainEqual(expect.objectContaining({ line: 2, column: 3, rule: 'key' }));
    expect(text).not.toContain(leaked.value);
    await h.app.jobs.runNow('alarms');
    const notices = await h.call('GET', '/me/notices', { as: ada });
    expect(notices.data).toContainEqual(expect.objectContaining({ kind: 'key_exposed', keyId: leaked.id }));
  });

  test('a body that is not one text is refused', async () => {
    for (const content of [undefined, null, 1, ['version: 1']]) {
      const { status, error } = await validate(content);
      expect([status, error.code]).toEqual([400, 'invalid_body']);
    }
    const other = await h.call('POST', '/schema/validate', {
      as: ada,
      body: { content: '', branch: 'main' },
    });
    expect([other.status, other.error.code]).toEqual([400, 'invalid_body']);
  });

  test('a file of more than 256 KiB is a problem, and a body of more than 1 MiB is refused', async () => {
    const large = await validate('#'.repeat(256 * 1024 + 1));
    expect(large.data).toMatchObject({ valid: false, problems: [{ rule: 'size' }] });
    const { status, error } = await validate('#'.repeat(1024 * 1024));
    expect([status, error.code]).toEqual([413, 'body_too_large']);
  });

  test('the largest file is accepted, however its JSON escapes it', async () => {
    expect((await validate(`${everyKind}${`#${'"'.repeat(98)}\n`.repeat(2_500)}`)).data).toMatchObject({
      valid: true,
    });
  });
});

test('GET /schema/postern.json is a JSON Schema, for anyone, and names its own address', async () => {
  const { statusCode, headers, body } = await h.app.web.inject('/api/v2/schema/postern.json');
  expect([statusCode, headers['content-type']]).toEqual([200, 'application/schema+json']);
  expect(JSON.parse(body)).toMatchObject({
    $id: `${uiOrigin}/api/v2/schema/postern.json`,
    type: 'object',
    required: ['version', 'services'],
  });
  // Also with an invalid credential.
  const authorization = 'Bearer app_pat_none';
  const url = '/api/v2/schema/postern.json';
  expect((await h.app.web.inject({ url, headers: { authorization } })).body).toBe(body);
});
