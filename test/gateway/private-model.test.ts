import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hour, second } from '../../src/core/clock.ts';
import { type Harness, openHarness, type Person } from '../harness.ts';
import { upload } from '../api/sites/uploads.ts';
import { type Browser, browserOf } from './private.ts';

/**
 * GR-12: whatever happens in whatever order, private content is served only while a grant is good for it. The model
 * knows the rules alone: a grant holds for five minutes, until its site changes who may see it or stops being served.
 */
let h: Harness;
let ada: Person;
let admin: Person;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 1_000_000 });
  ada = await h.person('Ada');
  admin = await h.person('Root', { admin: true });
});
afterAll(() => h.close());

const grantMs = 300 * second;

type World = {
  readonly id: string;
  url: string;
  visibility: 'public' | 'private';
  isDeleted: boolean;
  isTakenDown: boolean;
  isOn: boolean;
  expiresAt: number;
  /** When each browser's grant ends; for which address. */
  readonly grants: { until: number; url: string }[];
  readonly browsers: Browser[];
};

const isOpen = (world: World) =>
  world.isOn && !world.isDeleted && !world.isTakenDown && world.expiresAt > h.clock.now();

/** Ends what every change of who may see it ends. */
function endGrants(world: World): void {
  for (const grant of world.grants) grant.until = 0;
}

async function change(world: World, path: string, method: string, body?: unknown, as: Person = ada) {
  return await h.call(method, `/sites/${world.id}${path}`, { as, ...(body === undefined ? {} : { body }) });
}

const steps = {
  async open(world: World, browser: number) {
    const shown = await world.browsers[browser]?.open(world.url);
    const may = world.visibility === 'private' && isOpen(world);
    if (!may) return;
    // The limits of opening may refuse; what is served is what counts.
    const already = world.grants[browser];
    const holds = already !== undefined && already.until > h.clock.now() && already.url === world.url;
    if (shown?.status === 200 && !holds) {
      const until = Math.min(h.clock.now() + grantMs, world.expiresAt);
      world.grants[browser] = { until, url: world.url };
    }
  },
  async wait(_world: World, ms: number) {
    h.clock.advance(ms);
  },
  async flip(world: World) {
    const next = world.visibility === 'public' ? 'private' : 'public';
    const answer = await change(world, '', 'PATCH', { visibility: next });
    if (answer.status !== 200) return;
    Object.assign(world, { visibility: next, url: answer.data.url });
    endGrants(world);
  },
  async rename(world: World) {
    await change(world, '', 'PATCH', { name: `name ${h.clock.now()}` });
  },
  async revoke(world: World) {
    if ((await change(world, '/grants', 'DELETE')).status === 200) endGrants(world);
  },
  async remove(world: World) {
    if ((await change(world, '', 'DELETE')).status !== 200) return;
    if (!world.isDeleted) endGrants(world);
    world.isDeleted = true;
  },
  async restore(world: World) {
    if ((await change(world, '/restore', 'POST')).status === 200) world.isDeleted = false;
  },
  async takeDown(world: World) {
    const reason = { reason: 'a report' };
    if ((await change(world, '/take-down', 'POST', reason, admin)).status !== 200) return;
    if (!world.isTakenDown) endGrants(world);
    world.isTakenDown = true;
  },
  async putBack(world: World) {
    const answer = await change(world, '/put-back', 'POST', { reason: 'cleaned' }, admin);
    if (answer.status === 200) world.isTakenDown = false;
  },
  async toggle(world: World) {
    const current = await h.call('GET', '/config/sites', { as: admin });
    await h.call('PUT', '/config/sites', {
      as: admin,
      headers: { 'if-match': current.headers['etag'] ?? '' },
      body: { ...current.data.config, enabled: !world.isOn },
    });
    world.isOn = !world.isOn;
    if (!world.isOn) endGrants(world);
  },
} as const;

type Step = { readonly name: keyof typeof steps; readonly value: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ name: fc.constant('open' as const), value: fc.nat({ max: 1 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      name: fc.constant('wait' as const),
      value: fc.constantFrom(second, 30 * second, 61 * second, 299 * second, 300 * second, hour),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      name: fc.constantFrom(
        'flip',
        'rename',
        'revoke',
        'remove',
        'restore',
        'takeDown',
        'putBack',
        'toggle',
      ) as fc.Arbitrary<keyof typeof steps>,
      value: fc.constant(0),
    }),
  },
);

/** Every browser asks at every address the site ever had. */
async function checkAll(world: World, addresses: ReadonlySet<string>): Promise<void> {
  const now = h.clock.now();
  for (const [index, browser] of world.browsers.entries()) {
    const grant = world.grants[index];
    for (const url of addresses) {
      const isPrivate = new URL(url).host.startsWith('p-');
      const shown = await browser.asset(url);
      if (!isPrivate) continue;
      const may = isOpen(world) && grant !== undefined && grant.until > now && grant.url === url;
      expect([url, shown.status === 200]).toEqual([url, may]);
    }
  }
}

test('GR-12 served means: a good grant, and a site that is as it was when the grant was made', async () => {
  let opened = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 18 }), async (plan) => {
      const made = await upload(
        h,
        ada,
        { 'index.html': 'private' },
        { visibility: 'private', ttlHours: '2' },
      );
      const world: World = {
        id: made.data.id,
        url: made.data.url,
        visibility: 'private',
        isDeleted: false,
        isTakenDown: false,
        isOn: true,
        expiresAt: Date.parse(made.data.expiresAt),
        grants: [
          { until: 0, url: '' },
          { until: 0, url: '' },
        ],
        browsers: [browserOf(h, ada), browserOf(h, ada)],
      };
      const addresses = new Set([world.url]);
      try {
        for (const { name, value } of plan) {
          await steps[name](world, value);
          addresses.add(world.url);
          await checkAll(world, addresses);
          opened += world.grants.filter(({ until }) => until > h.clock.now()).length;
        }
      } finally {
        if (!world.isOn) await steps.toggle(world);
        // For the next run: room for sites, and a session that was used lately.
        await h.call('DELETE', `/sites/${world.id}`, { as: ada });
        await h.call('GET', '/auth/context', { as: admin });
      }
    }),
    { numRuns: 30 },
  );
  expect(opened).toBeGreaterThan(20);
});
