// @module-tag sql
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { minute } from '../../../src/core/clock.ts';
import { createOwnerSweep, type OwnerState } from '../../../src/features/keys/owner-sweep.ts';
import { sql, type Statement } from '../../../src/platform/database/sql.ts';
import { type Harness, openHarness, type Person, type TestKey } from '../../harness.ts';

let h: Harness;
let root: Person;
beforeEach(async () => {
  h = await openHarness();
  root = await h.person('Root', { admin: true });
});
afterEach(() => h.close());

const ask = (as: TestKey, on: Harness = h) =>
  on.call('GET', '/auth/context', { as, query: { can: 'repos:read' } });
const list = (as: TestKey, on: Harness = h) => on.call('GET', '/repositories', { as });
const enable = (person: Person, enabled: boolean) =>
  h.call('PATCH', `/users/${person.user.id}`, { as: root, body: { enabled } });
const eventsOf = async (key: TestKey, event: string) =>
  (await h.call('GET', '/audit/events', { as: root, query: { event, target: key.id } })).data;

/** Changes an account without an event, like an external directory. */
const changeQuietly = async ({ subject }: Person, change: Statement) => {
  // A check of the owner that an earlier step began must not find this change.
  await h.settle();
  await sql`update accounts set ${change} where subject = ${subject}`.run(h.database.sql);
  h.app.services.feed.announce({ topic: 'principal', subject: '*' });
  await h.settle();
};

describe('an owner who is disabled', () => {
  test('has keys that answer 403 user_disabled at once, stay active and counted, and later work again', async () => {
    const ada = await h.person('Ada');
    const key = await h.key(ada);
    expect((await list(key)).status).toBe(200);
    expect((await enable(ada, false)).status).toBe(200);
    await h.settle();
    expect((await list(key)).error.code).toBe('user_disabled');
    const shown = await h.call('GET', `/tokens/${key.id}`, { as: root });
    expect(shown.data).toMatchObject({ status: 'active', suspended: true });
    expect(await eventsOf(key, 'api_key.suspended')).toMatchObject([{ reason: 'owner_disabled' }]);
    await enable(ada, true);
    await h.settle();
    expect((await list(key)).status).toBe(200);
    expect(await eventsOf(key, 'api_key.suspended')).toMatchObject([
      { reason: 'owner_enabled' },
      { reason: 'owner_disabled' },
    ]);
  });

  test('loses the keys on every process within a second, with one event although every process checks', async () => {
    const peers = [await h.another(), await h.another()];
    const ada = await h.person('Ada');
    const key = await h.key(ada);
    for (const on of [h, ...peers]) expect((await list(key, on)).status).toBe(200);
    await enable(ada, false);
    h.clock.advance(250);
    await Promise.all(peers.map(async (on) => await on.app.jobs.runNow('change-feed')));
    await Promise.all([h, ...peers].map(async (on) => await on.settle()));
    h.clock.advance(250);
    for (const on of peers) await on.app.jobs.runNow('change-feed');
    for (const on of [h, ...peers]) expect((await list(key, on)).error.code).toBe('user_disabled');
    expect(await eventsOf(key, 'api_key.suspended')).toHaveLength(1);
    for (const on of peers) await on.close();
  });

  test('gets a notice', async () => {
    const ada = await h.person('Ada');
    const key = await h.key(ada);
    await enable(ada, false);
    await h.settle();
    const { notices } = await h.app.services.notices.list(
      { kind: 'user', userId: ada.user.id },
      { page: 1, limit: 9 },
    );
    expect(notices).toMatchObject([{ kind: 'key_suspended', keyId: key.id }]);
  });
});

describe('an identity check that finds an owner disabled', () => {
  const sites = (as: TestKey) => h.call('GET', '/sites', { as });
  const twoKeys = async (person: Person) =>
    [
      await h.key(person, { scopes: ['sites:read', 'repos:read'] }),
      await h.key(person, { scopes: ['repos:read'] }),
    ] as const;

  test('suspends every key of the owner at once, and reinstates them when it finds the owner enabled', async () => {
    const ada = await h.person('Ada');
    const [asking, silent] = await twoKeys(ada);
    for (const key of [asking, silent]) expect((await list(key)).status).toBe(200);
    await changeQuietly(ada, sql`enabled = false`);
    expect((await list(silent)).status).toBe(200);
    expect((await sites(asking)).error.code).toBe('user_disabled');
    for (const key of [asking, silent]) {
      expect((await list(key)).error.code).toBe('user_disabled');
      expect(await eventsOf(key, 'api_key.suspended')).toMatchObject([{ reason: 'owner_disabled' }]);
    }
    await changeQuietly(ada, sql`enabled = true`);
    expect((await sites(asking)).status).toBe(200);
    for (const key of [asking, silent]) expect((await list(key)).status).toBe(200);
  });

  test('suspends all of them or none, each with its event', async () => {
    const ada = await h.person('Ada');
    const keys = await twoKeys(ada);
    const { read, clock, tx } = h.app.services;
    let events = 0;
    const sweep = createOwnerSweep({
      ...h.app.services,
      read,
      clock,
      tx: (work) =>
        tx((stores) =>
          work({
            keys: stores.keys,
            changes: stores.changes,
            notices: stores.notices,
            audit: {
              async append(entry) {
                events += 1;
                if (events === 2) throw new Error('no room for the second event');
                await stores.audit.append(entry);
              },
            },
          }),
        ),
      findUser: async () => ada.user,
      stateOf: async () => 'disabled',
      setStamp: async () => undefined,
    });
    await expect(sweep.found(ada.user.id, 'disabled')).rejects.toThrow('no room');
    for (const key of keys) {
      expect((await list(key)).status).toBe(200);
      expect(await eventsOf(key, 'api_key.suspended')).toEqual([]);
    }
  });
});

describe('an owner who lost the role that lets a person use Postern', () => {
  test('has keys that the sweep suspends, and reinstates when the role is back', async () => {
    const ada = await h.person('Ada');
    const key = await h.key(ada, { scopes: ['repos:read', 'sites:read'] });
    await changeQuietly(ada, sql`roles = '[]'`);
    await h.app.jobs.runNow('owner-sweep');
    expect((await list(key)).error.code).toBe('user_disabled');
    expect((await h.call('GET', '/sites', { as: key })).error.code).toBe('role_required');
    expect(await eventsOf(key, 'api_key.suspended')).toMatchObject([{ reason: 'owner_without_role' }]);
    await changeQuietly(ada, sql`roles = '["user"]'`);
    await h.app.jobs.runNow('owner-sweep');
    expect((await list(key)).status).toBe(200);
  });

  test('loses the keys at once when an administrator takes the role away here', async () => {
    const ada = await h.person('Ada');
    const key = await h.key(ada);
    const setRoles = (roles: string[]) =>
      h.call('PATCH', `/users/${ada.user.id}`, { as: root, body: { roles } });
    await setRoles([]);
    await h.settle();
    expect((await list(key)).status).toBe(403);
    await setRoles(['user']);
    await h.settle();
    expect((await list(key)).status).toBe(200);
  });

  test('keeps the keys while too many owners lack the role; those of disabled owners are suspended', async () => {
    const people: { person: Person; key: TestKey }[] = [];
    for (let at = 0; at < 8; at += 1) {
      const person = await h.person(`Person${at}`);
      people.push({ person, key: await h.key(person) });
    }
    const [disabled, ...enabled] = people;
    for (const { person } of enabled.slice(0, 6)) await changeQuietly(person, sql`roles = '[]'`);
    await changeQuietly(disabled?.person ?? root, sql`enabled = false`);
    await h.app.jobs.runNow('owner-sweep');
    const outcomes = await Promise.all(people.map(async ({ key }) => (await list(key)).status));
    expect(outcomes).toEqual([403, 200, 200, 200, 200, 200, 200, 200]);
    const held = await h.call('GET', '/audit/events', { as: root, query: { event: 'sweep.held' } });
    expect(held.data).toMatchObject([{ details: { owners: 8, suspending: 1, withoutRole: 6 } }]);
  });
});

describe('an owner who is deleted', () => {
  test('has keys that are revoked once each, even by two processes', async () => {
    const other = await h.another();
    const ada = await h.person('Ada');
    const key = await h.key(ada);
    await h.call('DELETE', `/users/${ada.user.id}`, { as: root });
    await Promise.all([h.settle(), other.app.jobs.runNow('change-feed')]);
    await other.settle();
    for (const on of [h, other]) {
      h.clock.advance(250);
      await on.app.jobs.runNow('change-feed');
      expect((await list(key, on)).status).toBe(401);
    }
    expect((await h.call('GET', `/tokens/${key.id}`, { as: root })).data).toMatchObject({
      status: 'revoked',
      revokeReason: 'owner_deleted',
    });
    expect(await eventsOf(key, 'api_key.revoked')).toHaveLength(1);
    await other.close();
  });
});

describe('the sweep', () => {
  const setQuietly = async (people: readonly Person[], enabled: boolean) => {
    for (const person of people) await changeQuietly(person, sql`enabled = ${enabled}`);
  };
  const owners = async (count: number) => {
    const people: { person: Person; key: TestKey }[] = [];
    for (let at = 0; at < count; at += 1) {
      const person = await h.person(`Person${at}`);
      people.push({ person, key: await h.key(person) });
    }
    return people;
  };
  const suspended = async (key: TestKey) =>
    (await h.call('GET', `/tokens/${key.id}`, { as: root })).data.suspended as boolean;

  test('finds an unreported change within its five minutes', async () => {
    const people = await owners(5);
    await h.app.jobs.tick();
    await setQuietly(
      people.map(({ person }) => person),
      false,
    );
    h.clock.advance(5 * minute);
    await h.app.jobs.tick();
    for (const { key } of people) expect(await suspended(key)).toBe(true);
  });

  test('finds it within a minute if that is configured', async () => {
    const quick = await openHarness({ ownerSweepMinutes: 1 });
    const ada = await quick.person('Ada');
    const key = await quick.key(ada);
    await quick.app.jobs.tick();
    await sql`update accounts set enabled = false where subject = ${ada.subject}`.run(quick.database.sql);
    quick.app.services.feed.announce({ topic: 'principal', subject: '*' });
    quick.clock.advance(minute);
    await quick.app.jobs.tick();
    expect((await list(key, quick)).error.code).toBe('user_disabled');
    await quick.close();
  });

  test('is held, logged and audited if it would suspend more than a tenth and more than five of the owners', async () => {
    const people = await owners(7);
    const six = people.slice(0, 6).map(({ person }) => person);
    await setQuietly(six, false);
    await h.app.jobs.runNow('owner-sweep');
    for (const { key } of people) expect(await suspended(key)).toBe(false);
    const held = await h.call('GET', '/audit/events', { as: root, query: { event: 'sweep.held' } });
    expect(held.data).toMatchObject([{ details: { owners: 7, suspending: 6 }, outcome: 'failure' }]);
    expect(h.logged.some((line) => line.includes('owner sweep held') && line.includes('"level":50'))).toBe(
      true,
    );
    await setQuietly(six.slice(0, 1), true);
    await h.app.jobs.runNow('owner-sweep');
    for (const { key } of people.slice(1, 6)) expect(await suspended(key)).toBe(true);
  });

  test('suspends, reinstates and revokes once, even by two processes at the same time', async () => {
    const other = await h.another();
    const [{ person, key } = { person: root, key: await h.key(root) }] = await owners(1);
    const both = () =>
      Promise.all([h, other].map(async (on) => await on.app.services.sweep.checkOwner(person.user.id)));
    const quietly = async (enabled: boolean) => {
      await setQuietly([person], enabled);
      other.app.services.feed.announce({ topic: 'principal', subject: '*' });
      await other.settle();
      await both();
    };
    await quietly(false);
    expect(await eventsOf(key, 'api_key.suspended')).toHaveLength(1);
    await quietly(true);
    expect(await eventsOf(key, 'api_key.suspended')).toHaveLength(2);
    // As a removal does, without telling anyone.
    await sql`delete from accounts where subject = ${person.subject}`.run(h.database.sql);
    await sql`
      insert into account_tombstones (subject, deleted_at)
      values (${person.subject}, ${new Date(h.clock.now())})`.run(h.database.sql);
    for (const on of [h, other]) on.app.services.feed.announce({ topic: 'principal', subject: '*' });
    await both();
    expect(await eventsOf(key, 'api_key.revoked')).toHaveLength(1);
    await other.close();
  });

  test('changes nothing for an owner whose state the directory cannot tell', async () => {
    const { read, tx, clock, log } = h.app.services;
    const ada = await h.person('Ada');
    const key = await h.key(ada);
    let state: OwnerState = 'disabled';
    const sweep = createOwnerSweep({
      read,
      tx,
      clock,
      log,
      findUser: async () => ada.user,
      stateOf: async () => state,
      setStamp: async () => undefined,
    });
    expect(await sweep.run()).toMatchObject({ suspended: 1 });
    state = 'unknown';
    expect(await sweep.run()).toEqual({ owners: 1, suspended: 0, lifted: 0, revoked: 0, held: false });
    expect(await suspended(key)).toBe(true);
    state = 'active';
    expect(await sweep.run()).toMatchObject({ lifted: 1 });
    state = 'unknown';
    expect(await sweep.run()).toMatchObject({ suspended: 0 });
    expect(await suspended(key)).toBe(false);
    expect((await ask(key)).status).toBe(200);
  });
});
