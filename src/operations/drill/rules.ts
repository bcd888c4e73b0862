import { setTimeout as wait } from 'node:timers/promises';
import type { DrillInstance } from './drill-app.ts';
import { minute } from '../../core/clock.ts';
import { type Faults, noFaults, spoilKey } from './drill-faults.ts';
import { asKey, createVisitor, dataOf, overLoopback, type Reply, type Visitor } from './visitor.ts';

/**
 * Which things a drill breaks, one after another, and what clients must observe meanwhile and afterwards. The rules are
 * those of docs/explanation/faults.md and private-access.md: what cannot be checked grants no access, a valid credential
 * is never called wrong, and what does not need the broken part continues to work.
 */
export type Rule = {
  /** What is broken. */
  readonly scenario: string;
  readonly rule: string;
  readonly expected: string;
  readonly got: string;
  readonly passed: boolean;
};

export type World = {
  readonly instance: DrillInstance;
  readonly admin: Visitor;
  readonly owner: Visitor;
  readonly other: Visitor;
  readonly ownerId: string;
  signIn(): Promise<void>;
};

type Content = 'public' | 'private';
type Expected = {
  readonly status: number;
  /** The site whose content the response contains. It must contain no other content, and none if this is absent. */
  readonly shows?: Content;
  /** The response has a Retry-After header. */
  readonly comesBack?: true;
};

type Scene = World & {
  hold(rule: string, expected: Expected, reply: Promise<Reply>): Promise<void>;
  /** Two sites of this scene; the private one is open in the owner's browser. */
  readonly open: Site;
  readonly closed: Site;
  /** Already used; has sites:read and sites:write. */
  readonly key: Key;
  /** No process has cached this key yet. */
  readonly unseenKey: Key;
};
type Site = { readonly id: string; readonly url: string };
type Key = { readonly id: string; readonly value: string };
type Scenario = { readonly name: string; play(scene: Scene): Promise<void> };

const pages: Readonly<Record<Content, string>> = {
  public: 'everyone may read this',
  private: 'nobody but its owner may read this',
};
const served = (shows: Content): Expected => ({ status: 200, shows });
const accepted: Expected = { status: 200 };
const refused = (status: number): Expected => ({ status });
const unavailable: Expected = { status: 503, comesBack: true };

/** How a record is corrupted. */
const spoiled: Readonly<Record<string, (value: string) => string | null>> = {
  missing: () => null,
  invalid: () => 'nonsense',
  'changed by one letter': changed,
};

/** Each scenario ends with a check that everything works again: every fault must heal without a restart. */
const scenarios: readonly Scenario[] = [
  {
    name: 'nothing is broken',
    async play(scene) {
      const { hold, owner, other, admin, open, closed, key, instance } = scene;
      const stranger = createVisitor(instance.uiUrl, overLoopback);
      await hold('a public site is served', served('public'), stranger.navigate(open.url));
      await hold('a private site is served to its owner', served('private'), owner.asset(closed.url));
      await hold('a subresource without a grant is refused', refused(401), stranger.asset(closed.url));
      await hold('a page without a grant redirects to sign-in', refused(303), stranger.navigate(closed.url));
      await hold('another person gets no access', refused(403), other.open(closed.url));
      await hold('an administrator gets no access', refused(403), admin.open(closed.url));
      await hold('a key is accepted', accepted, useKey(scene, key));
      await hold('a changed key is refused', refused(401), useKey(scene, { ...key, value: `${key.value}x` }));
    },
  },
  {
    name: 'the identity service is unavailable',
    async play(scene) {
      const { hold, owner, open, closed, key } = scene;
      breakOnly(scene, { identity: 'away' });
      await hold('no new grant is issued', unavailable, owner.afresh().open(closed.url));
      await hold('publishing in a session is refused', unavailable, publishing(owner));
      await hold('a key cannot use Sites', unavailable, listSites(scene, key));
      await hold('a key is accepted on a route without an identity check', accepted, useKey(scene, key));
      await hold('a person can list their own keys', accepted, owner.api('GET', '/me/tokens'));
      await hold('an existing grant works', served('private'), owner.asset(closed.url));
      await hold('a public site is served', served('public'), owner.navigate(open.url));
      await allIsWell(scene);
    },
  },
  {
    name: 'the token behind the session was revoked',
    async play(scene) {
      const { hold, owner, closed, open } = scene;
      breakOnly(scene, { identity: 'inactive' });
      await hold('no new grant is issued', refused(401), owner.afresh().open(closed.url));
      await hold('the session has ended', refused(401), owner.api('GET', '/me/tokens'));
      await hold('an existing grant works until it expires', served('private'), owner.asset(closed.url));
      await hold('a public site is served', served('public'), owner.navigate(open.url));
      breakOnly(scene, {});
      await hold('the session stays ended', refused(401), owner.api('GET', '/me/tokens'));
      await scene.signIn();
      await allIsWell(scene);
    },
  },
  {
    name: 'the account was disabled',
    async play(scene) {
      const { hold, owner, admin, closed, key, ownerId } = scene;
      await must(admin.api('PATCH', `/users/${ownerId}`, { enabled: false }));
      await hold('the session has ended', refused(401), owner.api('GET', '/me/tokens'));
      await hold('a key cannot use Sites', refused(403), listSites(scene, key));
      await hold('an existing grant works until it expires', served('private'), owner.asset(closed.url));
      await must(admin.api('PATCH', `/users/${ownerId}`, { enabled: true }));
      await scene.signIn();
      await allIsWell(scene);
    },
  },
  ...(['away', 'silent'] as const).map((store) => ({
    name: store === 'away' ? 'the key-value store is unavailable' : 'the key-value store does not respond',
    async play(scene: Scene) {
      const { hold, owner, open, closed, key } = scene;
      breakOnly(scene, { store });
      await hold('a grant gives no access', unavailable, owner.asset(closed.url));
      await hold('no new grant is issued', unavailable, owner.afresh().open(closed.url));
      const change = owner.api('PATCH', `/sites/${closed.id}`, { visibility: 'public' });
      await hold('the visibility of a site cannot be changed', unavailable, change);
      await hold('a public site is served', served('public'), owner.navigate(open.url));
      await hold('a key is accepted', accepted, useKey(scene, key));
      breakOnly(scene, {});
      await hold('afterwards the grant works again', served('private'), owner.asset(closed.url));
      await allIsWell(scene);
    },
  })),
  {
    name: 'the key-value store lost all data',
    async play(scene) {
      const { hold, owner, open, closed, key, instance } = scene;
      instance.loseStore();
      await hold('grants are lost', refused(401), owner.asset(closed.url));
      await hold('a public site is served', served('public'), owner.navigate(open.url));
      await hold('a key is accepted', accepted, useKey(scene, key));
      await allIsWell(scene);
    },
  },
  ...Object.entries({
    'the grant': 'grant:',
    'the state of the site': 'site:',
    'the switch of Sites': 'sites:switch',
  }).map(([record, begins]) => ({
    name: `the record of ${record} is damaged`,
    async play(scene: Scene) {
      const { hold, owner, open, closed } = scene;
      for (const [what, becomes] of Object.entries(spoiled)) {
        const browser = owner.afresh();
        await must(browser.open(closed.url));
        breakOnly(scene, { record: { begins, becomes } });
        await hold(`${what}: a grant gives no access`, refused(401), browser.asset(closed.url));
        await hold(`${what}: a page redirects to sign-in`, refused(303), browser.navigate(closed.url));
        await hold(`${what}: a public site is served`, served('public'), owner.navigate(open.url));
        breakOnly(scene, {});
      }
      await allIsWell(scene);
    },
  })),
  {
    name: 'the one-time code is changed by one letter',
    async play(scene) {
      const { hold, owner, closed } = scene;
      breakOnly(scene, { record: { begins: 'grant-code:', becomes: changed } });
      await hold('no new grant is issued', refused(403), owner.afresh().open(closed.url));
      await hold('an existing grant works', served('private'), owner.asset(closed.url));
      await allIsWell(scene);
    },
  },
  {
    name: 'the scopes of a key are not a list',
    async play(scene) {
      const { hold, unseenKey, key, instance } = scene;
      const putBack = await spoilKey(instance.database, unseenKey.id, 'scopes');
      await hold('the key has no permissions', refused(403), listSites(scene, unseenKey));
      await hold('another key keeps its permissions', accepted, listSites(scene, key));
      await putBack();
      await allIsWell(scene);
    },
  },
  {
    name: 'the digest of a key was changed',
    async play(scene) {
      const { hold, unseenKey, key, instance } = scene;
      const putBack = await spoilKey(instance.database, unseenKey.id, 'digest');
      await hold('the key is refused', refused(401), listSites(scene, unseenKey));
      await hold('another key is accepted', accepted, listSites(scene, key));
      await putBack();
      await hold('restored, the key is accepted again', accepted, listSites(scene, unseenKey));
      await allIsWell(scene);
    },
  },
  {
    name: 'the database is unavailable',
    async play(scene) {
      const { hold, owner, open, closed, unseenKey } = scene;
      // A gateway cannot read from an unreachable database. Load both pages first, so that they are in its memory.
      await must(owner.navigate(open.url));
      await must(owner.asset(closed.url));
      breakOnly(scene, { database: 'away' });
      await hold('a valid key is not reported as invalid', unavailable, useKey(scene, unseenKey));
      await hold('a session is not reported as ended', unavailable, owner.api('GET', '/me/tokens'));
      await hold('no new grant is issued', unavailable, owner.afresh().open(closed.url));
      await hold('publishing is refused', unavailable, publishing(owner));
      await hold('an existing grant works', served('private'), owner.asset(closed.url));
      await hold('a public site is served', served('public'), owner.navigate(open.url));
      breakOnly(scene, {});
      await hold('afterwards the key is accepted', accepted, useKey(scene, unseenKey));
      await allIsWell(scene);
    },
  },
  {
    name: 'Sites is switched off',
    async play(scene) {
      const { hold, owner, open, closed, key } = scene;
      await switchSites(scene, false);
      await hold('a public site is not served', refused(404), owner.navigate(open.url));
      await hold('a grant gives no access', refused(404), owner.asset(closed.url));
      await hold('publishing is refused', refused(403), publishing(owner));
      await hold('a key cannot use Sites', refused(403), listSites(scene, key));
      await hold('a key is accepted on other routes', accepted, useKey(scene, key));
      await switchSites(scene, true);
      await hold('afterwards the earlier grant stays ended', refused(401), owner.asset(closed.url));
      await allIsWell(scene);
    },
  },
  {
    name: 'an administrator took the sites down',
    async play(scene) {
      const { hold, owner, admin, open, closed } = scene;
      for (const { id } of [open, closed])
        await must(admin.api('POST', `/sites/${id}/take-down`, { reason: 'drill' }));
      await hold('a public site is not served', refused(404), owner.navigate(open.url));
      await hold('a grant gives no access', refused(401), owner.asset(closed.url));
      await hold('no new grant is issued', refused(403), owner.afresh().open(closed.url));
      for (const { id } of [open, closed])
        await must(admin.api('POST', `/sites/${id}/put-back`, { reason: 'drill' }));
      await hold('afterwards the earlier grant stays ended', refused(401), owner.asset(closed.url));
      await allIsWell(scene);
    },
  },
  {
    name: 'the owner ended every grant, and revoked a key',
    async play(scene) {
      const { hold, owner, closed, unseenKey } = scene;
      await must(useKey(scene, unseenKey));
      await must(owner.api('DELETE', `/sites/${closed.id}/grants`));
      await must(owner.api('DELETE', `/me/tokens/${unseenKey.id}`));
      await hold('the grant gives no access', refused(401), owner.asset(closed.url));
      await hold('the key is refused', refused(401), useKey(scene, unseenKey));
      await allIsWell(scene);
    },
  },
  {
    // Must be the last: the built-in provider does not follow the advanced clock, so no one can sign in afterwards.
    name: 'five minutes pass while the identity service is unavailable',
    async play(scene) {
      const { hold, owner, open, closed, instance } = scene;
      breakOnly(scene, { identity: 'away' });
      instance.clock.advance(5 * minute);
      await untilServed(() => owner.navigate(open.url));
      await hold('the grant has expired', refused(401), owner.asset(closed.url));
      await hold('a public site is served', served('public'), owner.navigate(open.url));
    },
  },
];

/** Runs every scenario, even after one fails; calls `told` for each rule as it is decided. */
export async function playAll(
  world: World,
  told: (rule: Rule) => void,
  isAsked: (scenario: string) => boolean,
): Promise<void> {
  for (const { name: scenario, play } of scenarios.filter(({ name }) => isAsked(name))) {
    const tell = (rule: string, expected: string, got: string, passed: boolean) =>
      told({ scenario, rule, expected, got, passed });
    try {
      await play(await setUp(world, tell));
    } catch (error) {
      tell(
        'the scenario runs to its end',
        'yes',
        error instanceof Error ? error.message : String(error),
        false,
      );
    }
    breakOnly(world, {});
  }
}

type Tell = (rule: string, expected: string, got: string, passed: boolean) => void;

async function setUp(world: World, tell: Tell): Promise<Scene> {
  const { owner } = world;
  const [open, closed] = [await publish(owner, 'public'), await publish(owner, 'private')];
  const [key, unseenKey] = [await makeKey(owner), await makeKey(owner)];
  const scene: Scene = {
    ...world,
    open,
    closed,
    key,
    unseenKey,
    async hold(rule, expected, reply) {
      const got = await reply.catch((error: unknown) => String(error));
      const words = typeof got === 'string' ? got : inWords(expectedOf(got));
      tell(rule, inWords(expected), words, words === inWords(expected));
    },
  };
  await must(useKey(scene, key));
  await must(owner.open(closed.url));
  await must(owner.navigate(open.url));
  return scene;
}

async function allIsWell(scene: Scene): Promise<void> {
  const { hold, owner, open, closed, key } = scene;
  breakOnly(scene, {});
  await hold(
    'afterwards the owner opens the private site',
    served('private'),
    owner.afresh().open(closed.url),
  );
  await hold('afterwards a public site is served', served('public'), owner.navigate(open.url));
  await hold('afterwards a key can use Sites', accepted, listSites(scene, key));
  for (const { id } of [scene.key, scene.unseenKey]) await owner.api('DELETE', `/me/tokens/${id}`);
}

function breakOnly({ instance }: Pick<World, 'instance'>, faults: Partial<Faults>): void {
  Object.assign(instance.faults, noFaults(), faults);
}

/** Describes the response in the terms of an expectation. */
function expectedOf({ status, headers, text }: Reply): Expected {
  const shows = (['private', 'public'] as const).find((content) => text.includes(pages[content]));
  return {
    status,
    ...(shows === undefined ? {} : { shows }),
    ...(status === 503 && headers['retry-after'] !== undefined ? { comesBack: true } : {}),
  };
}

function inWords({ status, shows, comesBack }: Expected): string {
  return [
    String(status),
    ...(shows === undefined ? [] : [`with the ${shows} page`]),
    ...(comesBack ? ['with Retry-After'] : []),
  ].join(' ');
}

function changed(value: string): string {
  const last = value.slice(-1);
  return value.slice(0, -1) + (last === '0' ? '1' : '0');
}

const useKey = ({ instance }: World, { value }: Key) => asKey(instance.uiUrl, value, 'GET', '/auth/context');
const listSites = ({ instance }: World, { value }: Key) => asKey(instance.uiUrl, value, 'GET', '/sites');

function publishing(owner: Visitor, visibility: Content = 'public'): Promise<Reply> {
  const page = `<!doctype html><title>drill</title>${pages[visibility]}`;
  return owner.api('POST', `/sites?visibility=${visibility}`, page, { 'content-type': 'text/html' });
}

async function publish(owner: Visitor, visibility: Content): Promise<Site> {
  const { id, url } = dataOf(await must(publishing(owner, visibility)));
  return { id: String(id), url: String(url) };
}

async function makeKey(owner: Visitor): Promise<Key> {
  const made = await must(
    owner.api('POST', '/me/tokens', {
      name: 'drill',
      scopes: ['sites:read', 'sites:write'],
      repositoryAccess: { mode: 'all' },
      ttlHours: 1,
    }),
  );
  const { id, token } = dataOf(made);
  return { id: String(id), value: String(token) };
}

async function switchSites({ admin }: World, enabled: boolean): Promise<void> {
  const read = await must(admin.api('GET', '/config/sites'));
  const { config } = dataOf(read);
  if (typeof config !== 'object') throw new Error('The configuration of Sites cannot be read.');
  const match = { 'if-match': String(read.headers['etag']) };
  await must(admin.api('PUT', '/config/sites', { ...config, enabled }, match));
}

/** A step that a scenario needs before its first check. @throws Error when it fails */
export async function must(asked: Promise<Reply>): Promise<Reply> {
  const reply = await asked;
  if (reply.status >= 300)
    throw new Error(`A step of the drill failed with ${reply.status}: ${reply.text.slice(0, 300)}`);
  return reply;
}

/** After the clock was advanced, the gateway must read the database once before it serves again. */
async function untilServed(ask: () => Promise<Reply>): Promise<void> {
  for (let attempt = 0; attempt < 40 && (await ask()).status !== 200; attempt += 1) await wait(50);
}
