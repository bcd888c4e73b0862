// @module-tag sql
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { minute } from '../../../src/core/clock.ts';
import { sql } from '../../../src/platform/database/sql.ts';
import type { Answer, Harness, Person } from '../../harness.ts';
import { Browser } from '../../identity.ts';
import { openFrozenHarness } from './cast.ts';

/** Who must have a second factor: `secondFactor` of `/config/access`. The steps of a sign-in: second-factor.test.ts of the pages. */
let h: Harness;
let root: Person;
let stale: Person;
beforeAll(async () => {
  h = await openFrozenHarness();
  stale = await h.person('Stale', { admin: true, signedInAt: h.clock.now() - 120 * minute });
  root = await h.person('Root', { admin: true });
});
afterAll(async () => {
  await h.close();
  vi.useRealTimers();
});

const outcome = ({ status, error }: Answer) => (status < 400 ? String(status) : `${status} ${error.code}`);
const refused = '422 config_invalid';

async function change(as: Person, fields: object, query = {}): Promise<Answer> {
  return await h.call('PUT', '/config/access', {
    as,
    body: { signInsPerAddressPerMinute: 60, ...fields },
    query,
    headers: { 'if-match': '*' },
  });
}
const level = async () => (await h.call('GET', '/config/access', { as: root })).data.config.secondFactor;
const revert = (as: Person, version: number) =>
  h.call('POST', '/config/access/revert', { as, body: { version }, headers: { 'if-match': '*' } });

async function givePasskey({ subject }: Person): Promise<void> {
  await sql`
    insert into passkeys (id, subject, credential_id, public_key, counter, transports, name, is_synced, created_at)
    values (${`psk_${subject}`}, ${subject}, ${subject}, ${Buffer.alloc(1)}, 0, ${[]}, 'A laptop', false,
            ${new Date(h.clock.now())})`.run(h.database.sql);
}

test('only an administrator who has a passkey can require a second factor', async () => {
  expect(await level()).toBe('optional');
  for (const secondFactor of ['administrators', 'everyone']) {
    const answer = await change(root, { secondFactor });
    expect(outcome(answer)).toBe(refused);
    expect(answer.error.message).toContain('You have no passkey');
    expect(answer.error.details.fields[0].field).toBe('secondFactor');
    expect(outcome(await change(root, { secondFactor }, { dryRun: 'true' }))).toBe(refused);
  }
  expect(outcome(await change(root, { secondFactor: 'all' }))).toBe(refused);
  expect(await level()).toBe('optional');
});

test('it is raised without a fresh sign-in, and lowered only with one; an omitted one stays', async () => {
  await givePasskey(root);
  await givePasskey(stale);
  const lower = '403 fresh_authentication_required';
  expect(outcome(await change(stale, { secondFactor: 'administrators' }))).toBe('200');
  expect(outcome(await change(stale, { secondFactor: 'everyone' }))).toBe('200');
  expect(outcome(await change(stale, {}))).toBe('200');
  expect(await level()).toBe('everyone');
  expect(outcome(await change(stale, { secondFactor: 'administrators' }))).toBe(lower);
  expect(outcome(await change(stale, { secondFactor: 'optional' }))).toBe(lower);
  expect(outcome(await revert(stale, 0))).toBe(lower);
  expect(outcome(await change(root, { secondFactor: 'administrators' }))).toBe('200');
  expect(outcome(await change(root, { secondFactor: 'optional' }))).toBe('200');
});

test('an earlier document is restored by the same rules', async () => {
  const bare = await h.person('Bare', { admin: true });
  const { data } = await h.call('GET', '/config/access/history', { as: root });
  const everyone = data.find(
    ({ config }: { config: { secondFactor: string } }) => config.secondFactor === 'everyone',
  );
  expect(outcome(await revert(bare, everyone.version))).toBe(refused);
  expect(outcome(await revert(root, everyone.version))).toBe('200');
  expect(await level()).toBe('everyone');
  // An administrator without a passkey can still change the rest, and lower the level.
  expect(outcome(await change(bare, { secondFactor: 'everyone' }))).toBe('200');
  expect(outcome(await change(bare, { secondFactor: 'optional' }))).toBe('200');
});

test('the next sign-in on every process asks for it', async () => {
  const other = await h.another();
  expect(outcome(await change(root, { secondFactor: 'administrators' }))).toBe('200');
  // Within a second, without an announcement that reaches the other process.
  h.clock.advance(1_001);
  const after = async (process: Harness, name: string) => {
    const browser = new Browser(process.app.web);
    const form = { email: `${name}@example.com`, password: 'correct horse battery', decision: 'sign-in' };
    const page = await browser.follow(await browser.get('/auth/login'));
    const action = /<form method="post" action="([^"]+)"/.exec(page.text)?.[1] ?? '';
    return (await browser.follow(await browser.post(action, form))).text;
  };
  await h.person('Ada');
  for (const process of [h, other]) {
    expect(await after(process, 'root')).toContain('Confirm that it is you');
    expect(await after(process, 'bare')).toContain('Add a passkey');
    expect(await after(process, 'ada')).not.toContain('passkey-options');
  }
  expect(outcome(await change(root, { secondFactor: 'optional' }))).toBe('200');
  await other.close();
});

test('an installation at an IP address has no passkeys, so it requires none', async () => {
  const at = await openFrozenHarness({ uiUrl: 'http://127.0.0.1:3000' });
  const boss = await at.person('Boss', { admin: true });
  const answer = await at.call('PUT', '/config/access', {
    as: boss,
    body: { signInsPerAddressPerMinute: 60, secondFactor: 'everyone' },
    headers: { 'if-match': '*', origin: 'http://127.0.0.1:3000', host: '127.0.0.1:3000' },
  });
  expect(outcome(answer)).toBe(refused);
  expect(answer.error.message).toContain('IP address');
  await at.close();
});
