import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hour, minute, second } from '../../src/core/clock.ts';
import { type Harness, openHarness, type Person } from '../harness.ts';
import { upload } from '../api/sites/uploads.ts';
import { type Browser, browserOf } from './private.ts';

/**
 * GR-12: whatever happens in whatever order, private content is served only while a grant is good for it. The model
 * predicts every response from the rules alone, and learns from a response only the addresses that the product generates:
 * a grant holds for five minutes, until its site changes who may see it or stops being served.
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
/** A site that ends sooner gives no grants. */
const minGrantMs = 5 * second;
/** In any minute: for one person and site, and for one browser and address. */
const grantsPerMinute = { site: 10, address: 3 };

type Grant = { readonly browser: number; readonly url: string; readonly issuedAt: number; isEnded: boolean };

type World = {
  readonly id: string;
  url: string;
  visibility: 'public' | 'private';
  isDeleted: boolean;
  isTakenDown: boolean;
  isOn: boolean;
  readonly expiresAt: number;
  /** Every grant that was ever issued. */
  readonly grants: Grant[];
  readonly browsers: Browser[];
};

const isOpen = (world: World) =>
  world.isOn && !world.isDeleted && !world.isTakenDown && world.expiresAt > h.clock.now();

/** Whether the browser's grant for this address is good. */
const holds = ({ grants }: World, browser: number, url: string) =>
  grants.some(
    (grant) =>
      grant.browser === browser &&
      grant.url === url &&
      !grant.isEnded &&
      grant.issuedAt + grantMs > h.clock.now(),
  );

function mayGetGrant({ grants, url, expiresAt }: World, browser: number): boolean {
  const now = h.clock.now();
  const ofSite = grants.filter(({ issuedAt }) => issuedAt + minute > now);
  return (
    expiresAt - now >= minGrantMs &&
    ofSite.length < grantsPerMinute.site &&
    triesOf(grants, browser, url, now) < grantsPerMinute.address
  );
}

/** The minute in which a browser's grants for an address are counted starts with a grant, and the next one with the first after it. */
function triesOf(grants: readonly Grant[], browser: number, url: string, now: number): number {
  let since = Number.NEGATIVE_INFINITY;
  let tries = 0;
  for (const { issuedAt } of grants.filter((grant) => grant.browser === browser && grant.url === url)) {
    if (issuedAt - since < minute) tries += 1;
    else [since, tries] = [issuedAt, 1];
  }
  return now - since < minute ? tries : 0;
}

/** Ends what every change of who may see it ends. */
function endGrants({ grants }: World): void {
  for (const grant of grants) grant.isEnded = true;
}

function expectOutcome(of: string, found: boolean, predicted: boolean): void {
  expect([of, found]).toEqual([of, predicted]);
}

/** Makes a change and expects what the model says of it. */
async function change(
  world: World,
  [method, path, body]: readonly [method: string, path: string, body?: unknown],
  { isAllowed, as = ada }: { isAllowed: boolean; as?: Person },
) {
  const answer = await h.call(method, `/sites/${world.id}${path}`, {
    as,
    ...(body === undefined ? {} : { body }),
  });
  expectOutcome(`${method} ${path}`, answer.status < 300, isAllowed);
  return answer;
}

const steps = {
  async open(world: World, browser: number) {
    const { url, visibility } = world;
    const isPrivate = visibility === 'private';
    const isGranted =
      isPrivate && isOpen(world) && !holds(world, browser, url) && mayGetGrant(world, browser);
    if (isGranted) world.grants.push({ browser, url, issuedAt: h.clock.now(), isEnded: false });
    const isServed = isOpen(world) && (!isPrivate || holds(world, browser, url));
    const shown = await world.browsers[browser]?.open(url);
    expectOutcome('open', shown?.status === 200, isServed);
  },
  async wait(_world: World, ms: number) {
    h.clock.advance(ms);
  },
  async flip(world: World) {
    const visibility = world.visibility === 'public' ? 'private' : 'public';
    const isAllowed = world.isOn && !world.isDeleted;
    const answer = await change(world, ['PATCH', '', { visibility }], { isAllowed });
    if (!isAllowed) return;
    Object.assign(world, { visibility, url: answer.data.url });
    endGrants(world);
  },
  async rename(world: World) {
    const isAllowed = world.isOn && !world.isDeleted;
    await change(world, ['PATCH', '', { name: `name ${h.clock.now()}` }], { isAllowed });
  },
  async revoke(world: World) {
    await change(world, ['DELETE', '/grants'], { isAllowed: world.isOn });
    if (world.isOn) endGrants(world);
  },
  async remove(world: World) {
    await change(world, ['DELETE', ''], { isAllowed: world.isOn });
    if (!world.isOn || world.isDeleted) return;
    endGrants(world);
    world.isDeleted = true;
  },
  async restore(world: World) {
    await change(world, ['POST', '/restore'], { isAllowed: world.isOn });
    if (world.isOn) world.isDeleted = false;
  },
  async takeDown(world: World) {
    await change(world, ['POST', '/take-down', { reason: 'a report' }], { isAllowed: true, as: admin });
    if (!world.isTakenDown) endGrants(world);
    world.isTakenDown = true;
  },
  async putBack(world: World) {
    await change(world, ['POST', '/put-back', { reason: 'cleaned' }], { isAllowed: true, as: admin });
    world.isTakenDown = false;
  },
  async toggle(world: World) {
    const current = await h.call('GET', '/config/sites', { as: admin });
    const changed = await h.call('PUT', '/config/sites', {
      as: admin,
      headers: { 'if-match': current.headers['etag'] ?? '' },
      body: { ...current.data.config, enabled: !world.isOn },
    });
    expectOutcome('toggle', changed.status === 200, true);
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
      // No sum of them is a whole minute: the limits count in slots of 100 ms, and the model in instants.
      value: fc.constantFrom(second, 31 * second, 61 * second, 299 * second, 300 * second, hour),
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
  for (const [index, browser] of world.browsers.entries()) {
    for (const url of addresses) {
      const shown = await browser.asset(url);
      const isPublic = world.visibility === 'public' && url === world.url;
      const may = isOpen(world) && (isPublic || holds(world, index, url));
      expectOutcome(url, shown.status === 200, may);
    }
  }
}

test('GR-12 content is served only with a valid grant, and if the site has not changed since', {
  tags: 'flood',
}, async () => {
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
        grants: [],
        browsers: [browserOf(h, ada), browserOf(h, ada)],
      };
      const addresses = new Set([world.url]);
      try {
        for (const { name, value } of plan) {
          await steps[name](world, value);
          addresses.add(world.url);
          await checkAll(world, addresses);
        }
        opened += world.grants.length;
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
