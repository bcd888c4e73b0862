// @module-tag sql
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { minute } from '../../core/clock.ts';
import { admin, Browser, frozenTime, type IdentityApp, openIdentityApp } from '../../../test/identity.ts';

const clock = frozenTime();
let open: IdentityApp;
let boss: Browser;
let bossId: string;

type Body = {
  data: Record<string, unknown> & { id: string; subject?: string };
  error: { code: string } | null;
};

beforeAll(async () => {
  open = await openIdentityApp(clock);
  await open.identity.firstAdministrator.ensure(admin);
});
afterAll(() => open.close());
beforeEach(async () => {
  clock.advance(20 * minute);
  boss = new Browser(open.app);
  await boss.signIn(admin.email, admin.password);
  const { accounts } = await open.identity.accounts.list({ search: admin.email, offset: 0, limit: 1 });
  bossId = accounts[0]?.userId ?? '';
});

let made = 0;
const password = 'a long enough password';
async function create(path: '/users' | '/groups', body: object) {
  made += 1;
  const unique = path === '/users' ? { email: `u${made}@example.com`, password } : {};
  const answer = await boss.api('POST', path, { name: `Name ${made}`, ...unique, ...body });
  expect([answer.status, answer.text]).toEqual([201, answer.text]);
  return (answer.json() as Body).data;
}
const codeOf = (answer: { json(): unknown }) => (answer.json() as Body).error?.code;
const rolesOf = async (id: string) => {
  const user = await open.identity.findUser(id);
  const principal = await open.identity.directory.principal(user?.subject ?? '');
  return principal.kind === 'active' ? principal.roles : principal.kind;
};

describe('users', () => {
  test('an administrator creates an account that can sign in, and nobody is told a password but once', async () => {
    const answer = await boss.api('POST', '/users', { email: 'new@example.com', name: 'New' });
    const { data } = answer.json() as Body;
    expect(data).toMatchObject({
      email: 'new@example.com',
      roles: ['user'],
      enabled: true,
      lastLoginAt: null,
    });
    // What operators write as `owner` of an imported key.
    const { accounts } = await open.identity.accounts.list({
      search: 'new@example.com',
      offset: 0,
      limit: 1,
    });
    expect([data.subject, typeof data.subject]).toEqual([accounts[0]?.subject, 'string']);
    const generated = String(data['generatedPassword']);
    expect(generated.length).toBeGreaterThanOrEqual(20);
    expect((await boss.api('GET', `/users/${data.id}`)).text).not.toContain(generated);
    expect(JSON.stringify(open.audit)).not.toContain(generated);
    expect((await new Browser(open.app).signIn('new@example.com', generated)).location).toBe('/after');
  });

  test('an account that never signed in is a user already', async () => {
    const user = await create('/users', {});
    expect(await open.identity.findUser(user.id)).toMatchObject({
      id: user.id,
      issuer: open.identity.issuer,
    });
  });

  test('search and pages find people', async () => {
    await create('/users', { name: 'Grace Hopper' });
    const found = (await boss.api('GET', '/users?search=hopper&limit=1')).json() as {
      data: { name: string }[];
      metadata: unknown;
    };
    expect(found.data.map(({ name }) => name)).toEqual(['Grace Hopper']);
    expect(found.metadata).toEqual({ pagination: { current: 1, total: 1, items: 1, limit: 1 } });
    expect((await boss.api('GET', '/users?search=%25')).json()).toMatchObject({ data: [] });
  });

  test('a taken e-mail address is refused in any case, when creating and when changing', async () => {
    const user = await create('/users', { email: 'taken@example.com' });
    const again = await boss.api('POST', '/users', { email: 'TAKEN@example.com', name: 'X', password });
    expect([again.status, codeOf(again)]).toEqual([409, 'name_conflict']);
    const changed = await boss.api('PATCH', `/users/${user.id}`, { email: admin.email });
    expect([changed.status, codeOf(changed)]).toEqual([409, 'name_conflict']);
  });

  test.each([
    [{ email: 'nobody', name: 'X' }, 'invalid_body'],
    [{ email: 'a@example.com', name: ' ' }, 'invalid_name'],
    [{ email: 'a@example.com', name: 'X\u0000Y' }, 'invalid_name'],
    [{ email: 'a@example.com', name: 'X', password: 'short' }, 'invalid_body'],
    [{ email: 'a@example.com', name: 'X', roles: ['owner'] }, 'invalid_body'],
    [{ email: 'a@example.com', name: 'X', groups: ['grp_none'] }, 'invalid_body'],
    [{ email: 'a@example.com', name: 'X', isAdmin: true }, 'invalid_body'],
  ])('bad input %j is refused with %s', async (body, code) => {
    const answer = await boss.api('POST', '/users', body);
    expect([answer.status, codeOf(answer)]).toEqual([400, code]);
  });

  test('a role that is taken away is gone at the next question', async () => {
    const user = await create('/users', { roles: ['user', 'admin'] });
    expect(await rolesOf(user.id)).toEqual(['user', 'admin']);
    await boss.api('PATCH', `/users/${user.id}`, { roles: ['user'] });
    expect(await rolesOf(user.id)).toEqual(['user']);
  });

  test('a demoted administrator is refused on the very next request', async () => {
    const user = await create('/users', { email: 'demoted@example.com', roles: ['user', 'admin'] });
    const second = new Browser(open.app);
    await second.signIn('demoted@example.com', password);
    expect((await second.api('GET', '/users')).status).toBe(200);
    await boss.api('PATCH', `/users/${user.id}`, { roles: ['user'] });
    expect((await second.api('GET', '/users')).status).toBe(403);
  });

  test('the last enabled administrator cannot be demoted, disabled or deleted', async () => {
    const later = await open.identity.accounts.list({ offset: 0, limit: 100 });
    for (const { userId, effectiveRoles } of later.accounts) {
      if (userId !== bossId && effectiveRoles.includes('admin')) await boss.api('DELETE', `/users/${userId}`);
    }
    const path = `/users/${bossId}`;
    const answers = [
      await boss.api('PATCH', path, { roles: ['user'] }),
      await boss.api('PATCH', path, { enabled: false }),
      await boss.api('DELETE', path),
    ];
    expect(answers.map(codeOf)).toEqual(['state_conflict', 'state_conflict', 'state_conflict']);
    expect((await boss.api('GET', '/users')).status).toBe(200);
  });

  test('two administrators who demote each other at the same moment leave one', async () => {
    const second = await create('/users', { email: 'second@example.com', roles: ['user', 'admin'] });
    const other = new Browser(open.app);
    await other.signIn('second@example.com', password);
    const answers = await Promise.all([
      boss.api('PATCH', `/users/${second.id}`, { roles: ['user'] }),
      other.api('PATCH', `/users/${bossId}`, { roles: ['user'] }),
    ]);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(await open.identity.firstAdministrator.hasAdministrator()).toBe(true);
    const winner = answers[0].status === 200 ? boss : other;
    await winner.api('PATCH', `/users/${bossId}`, { roles: ['user', 'admin'] });
  });

  test('signing someone out ends their sessions, not their account', async () => {
    const user = await create('/users', { email: 'out@example.com' });
    const person = new Browser(open.app);
    await person.signIn('out@example.com', password);
    expect((await boss.api('POST', `/users/${user.id}/sign-out`)).status).toBe(200);
    expect((await person.api('GET', '/me/clients')).status).toBe(401);
    const page = await person.follow(await person.get('/auth/login'));
    expect(page.text).toContain('type="password"');
    expect(open.audit.at(-1)).toMatchObject({ event: 'user.signed_out', target: { id: user.id } });
  });

  test('a reset password replaces the old one and ends every session', async () => {
    const user = await create('/users', { email: 'reset@example.com' });
    const person = new Browser(open.app);
    await person.signIn('reset@example.com', password);
    const answer = await boss.api('POST', `/users/${user.id}/reset-password`);
    const generated = String((answer.json() as Body).data['generatedPassword']);
    expect((await person.api('GET', '/me/clients')).status).toBe(401);
    expect((await new Browser(open.app).signIn('reset@example.com', password)).status).toBe(401);
    // What was proved in the very moment of the reset does not count.
    clock.advance(1);
    expect((await new Browser(open.app).signIn('reset@example.com', generated)).location).toBe('/after');
    const chosen = await boss.api('POST', `/users/${user.id}/reset-password`, {
      password: 'chosen password',
    });
    expect((chosen.json() as Body).data['generatedPassword']).toBeNull();
    expect(JSON.stringify(open.audit)).not.toContain('chosen password');
  });

  test('a person changes the own password with the one of now, and is signed out everywhere', async () => {
    await create('/users', { email: 'own@example.com' });
    const [person, elsewhere] = [new Browser(open.app), new Browser(open.app)];
    await person.signIn('own@example.com', password);
    await elsewhere.signIn('own@example.com', password);
    const wanted = 'a password of one’s own';
    const change = (currentPassword: string, newPassword: string) =>
      person.api('POST', '/me/password', { currentPassword, newPassword });
    const refusals = [
      [await change('not the password', wanted), 'currentPassword'],
      [await change(password, password), 'newPassword'],
      [await change(password, 'too short'), 'newPassword'],
    ] as const;
    for (const [answer, field] of refusals) {
      expect(answer.status).toBe(400);
      expect((answer.json() as { error: object }).error).toMatchObject({
        code: 'invalid_body',
        details: { fields: [{ field }] },
      });
    }
    expect((await person.api('GET', '/me/clients')).status).toBe(200);

    expect((await change(password, wanted)).status).toBe(200);
    for (const browser of [person, elsewhere])
      expect((await browser.api('GET', '/me/clients')).status).toBe(401);
    clock.advance(1);
    expect((await new Browser(open.app).signIn('own@example.com', password)).status).toBe(401);
    expect((await new Browser(open.app).signIn('own@example.com', wanted)).location).toBe('/after');
    expect(open.audit.at(-1)).toMatchObject({ event: 'session.started' });
    expect(open.audit.map(({ event }) => event)).toContain('user.password_changed');
    expect(JSON.stringify(open.audit)).not.toContain(wanted);
  });

  test('who guesses at the password of a session that was left open is slowed down like at a sign-in', async () => {
    await create('/users', { email: 'left-open@example.com' });
    const person = new Browser(open.app);
    await person.signIn('left-open@example.com', password);
    const guess = () =>
      person.api('POST', '/me/password', { currentPassword: 'a guess', newPassword: 'a new password' });
    const statuses: number[] = [];
    for (let nth = 0; nth < 12; nth += 1) statuses.push((await guess()).status);
    expect(statuses.at(0)).toBe(400);
    expect(statuses.at(-1)).toBe(429);
  });

  test('a deleted account is gone for the directory and for administrators', async () => {
    const user = await create('/users', { email: 'gone@example.com' });
    expect((await boss.api('DELETE', `/users/${user.id}`)).status).toBe(200);
    expect(await rolesOf(user.id)).toBe('missing');
    expect((await boss.api('GET', `/users/${user.id}`)).status).toBe(404);
    expect((await boss.api('DELETE', `/users/${user.id}`)).status).toBe(404);
    expect((await new Browser(open.app).signIn('gone@example.com', password)).status).toBe(401);
  });

  test('every change is in the audit log with what was and what is', async () => {
    const user = await create('/users', { email: 'trail@example.com' });
    await boss.api('PATCH', `/users/${user.id}`, { name: 'Renamed' });
    expect(open.audit.at(-1)).toMatchObject({
      event: 'user.changed',
      auditContext: { actor: { kind: 'user', id: bossId } },
      details: { before: { email: 'trail@example.com' }, after: { name: 'Renamed' } },
    });
  });

  test('a person without the role administers nothing', async () => {
    await create('/users', { email: 'plain@example.com' });
    const person = new Browser(open.app);
    await person.signIn('plain@example.com', password);
    for (const path of ['/users', `/users/${bossId}`, '/groups', `/users/${bossId}/clients`]) {
      expect([path, (await person.api('GET', path)).status]).toEqual([path, 403]);
    }
    expect((await person.api('PATCH', `/users/${bossId}`, { roles: [] })).status).toBe(403);
  });
});

describe('groups', () => {
  test('a role given three groups up reaches an account, and leaves with any link between', async () => {
    const top = await create('/groups', { roles: ['admin'] });
    const middle = await create('/groups', { parentId: top.id });
    const bottom = await create('/groups', { parentId: middle.id });
    const user = await create('/users', { groups: [bottom.id] });
    expect(await rolesOf(user.id)).toEqual(['user', 'admin']);
    await boss.api('PATCH', `/groups/${middle.id}`, { parentId: null });
    expect(await rolesOf(user.id)).toEqual(['user']);
    await boss.api('PATCH', `/groups/${middle.id}`, { parentId: top.id });
    await boss.api('PATCH', `/groups/${top.id}`, { roles: [] });
    expect(await rolesOf(user.id)).toEqual(['user']);
    await boss.api('PATCH', `/groups/${top.id}`, { roles: ['admin'] });
    await boss.api('PATCH', `/users/${user.id}`, { groups: [] });
    expect(await rolesOf(user.id)).toEqual(['user']);
  });

  test('a group cannot be inside itself, however far down', async () => {
    const top = await create('/groups', {});
    const below = await create('/groups', { parentId: top.id });
    const answer = await boss.api('PATCH', `/groups/${top.id}`, { parentId: below.id });
    expect([answer.status, codeOf(answer)]).toEqual([400, 'invalid_body']);
    const own = await boss.api('PATCH', `/groups/${top.id}`, { parentId: top.id });
    expect(own.status).toBe(400);
  });

  test('a group with groups inside it is not deleted', async () => {
    const top = await create('/groups', {});
    const below = await create('/groups', { parentId: top.id });
    expect(codeOf(await boss.api('DELETE', `/groups/${top.id}`))).toBe('state_conflict');
    expect((await boss.api('DELETE', `/groups/${below.id}`)).status).toBe(200);
    expect((await boss.api('DELETE', `/groups/${top.id}`)).status).toBe(200);
    expect((await boss.api('GET', `/groups/${top.id}`)).status).toBe(404);
  });

  test('a name is used once', async () => {
    const group = await create('/groups', { name: 'Operators' });
    const again = await boss.api('POST', '/groups', { name: 'operators' });
    expect([again.status, codeOf(again)]).toEqual([409, 'name_conflict']);
    expect((await boss.api('GET', `/groups/${group.id}`)).json()).toMatchObject({
      data: { name: 'Operators', memberCount: 0, parentId: null },
    });
    expect((await boss.api('GET', '/groups?limit=1')).status).toBe(200);
  });

  test('the group that makes the last administrator keeps its role', async () => {
    const group = await create('/groups', { roles: ['admin'] });
    const { accounts } = await open.identity.accounts.list({ offset: 0, limit: 100 });
    await boss.api('PATCH', `/users/${bossId}`, { groups: [group.id] });
    for (const { userId, roles } of accounts) {
      if (roles.includes('admin')) await boss.api('PATCH', `/users/${userId}`, { roles: ['user'] });
    }
    expect(codeOf(await boss.api('PATCH', `/groups/${group.id}`, { roles: [] }))).toBe('state_conflict');
    expect(codeOf(await boss.api('DELETE', `/groups/${group.id}`))).toBe('state_conflict');
    await boss.api('PATCH', `/users/${bossId}`, { roles: ['user', 'admin'] });
  });
});
