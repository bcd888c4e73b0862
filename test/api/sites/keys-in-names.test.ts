import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { digestOf } from '../../../src/features/keys/key-value.ts';
import { type Harness, openHarness, type Person } from '../../harness.ts';
import { archiveOf, formOf, start, upload } from './uploads.ts';

/** An API key in a name is refused, reported as exposed, and repeated nowhere (threat T37). */
let h: Harness;
let ada: Person;
let root: Person;
beforeAll(async () => {
  h = await openHarness();
  [ada, root] = [await h.person('Ada'), await h.person('Root', { admin: true })];
});
afterAll(() => h.close());

async function exposuresOf(id: string): Promise<number> {
  await h.app.services.alarms.flush();
  await h.app.services.denials.flush({ all: true });
  const query = { event: 'api_key.exposed', target: id };
  return (await h.call('GET', '/audit/events', { as: root, query })).data.length;
}

test.each(['zip', 'html'])('T37 a form whose file is named like a key, .%s, is refused', async (kind) => {
  const key = await h.key(ada);
  const value = kind === 'zip' ? archiveOf({ 'index.html': 'x' }).bytes : 'x';
  const raw = formOf([{ name: 'file', fileName: `backup ${key.value}.${kind}`, value }]);
  for (const query of [{}, { name: 'Handbook' }]) {
    const answer = await h.call('POST', '/sites', {
      as: ada,
      raw,
      query: { ...query, visibility: 'public' },
    });
    expect([answer.status, answer.error.code]).toEqual([422, 'credential_in_content']);
    expect(answer.text).not.toContain(key.value);
  }
  expect(await exposuresOf(key.id)).toBe(1);
  expect((await h.call('GET', '/sites', { as: ada })).data).toEqual([]);
});

test('T37 a digest upload that announces a file named like a key is refused', async () => {
  const key = await h.key(ada);
  const { id } = (await h.call('POST', '/sites', { as: ada, body: {} })).data;
  const answer = await start(h, ada, id, { 'index.html': 'x', [`${key.value}.html`]: 'y' });
  expect([answer.status, answer.error.code]).toEqual([422, 'credential_in_content']);
  expect(answer.text).not.toContain(key.value);
  expect(await exposuresOf(key.id)).toBe(1);
});

test('T37 an imported key of the older form is found in content, in names, and in announced names', async () => {
  const value = `app_svc_${randomBytes(20).toString('hex')}`;
  const record = {
    digest: digestOf(value),
    prefix: 'app_svc_',
    name: 'older deployer',
    scopes: ['repos:read'],
    createdAt: '2025-03-01T00:00:00Z',
    expiresAt: null,
  };
  expect(await h.app.services.importKeys([JSON.stringify(record)])).toMatchObject({ kind: 'imported' });
  const { keyId } = (await h.call('GET', '/auth/context', { as: `Bearer ${value}` })).data;
  const { id } = (await h.call('POST', '/sites', { as: ada, body: {} })).data;
  for (const answer of [
    await upload(h, ada, { 'index.html': `<script>token="${value}"</script>` }),
    await upload(h, ada, { 'index.html': 'x', [`${value}.html`]: 'y' }),
    await start(h, ada, id, { 'index.html': 'x', [`${value}.html`]: 'y' }),
  ]) {
    expect([answer.status, answer.error.code]).toEqual([422, 'credential_in_content']);
    expect(answer.text).not.toContain(value);
  }
  expect(await exposuresOf(keyId)).toBe(1);
});
