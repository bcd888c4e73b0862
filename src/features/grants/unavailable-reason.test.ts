import { expect, test } from 'vitest';
import { minute, second } from '../../core/clock.ts';
import { systemRandom } from '../../core/ids.ts';
import { memoryKv } from '../../platform/kv/memory-kv.ts';
import { FakeClock } from '../../../test/clock.ts';
import { createInstanceRegistry, type Workload } from './instance-registry.ts';
import { environmentGrants, siteGrants } from './grant-kind.ts';
import { type Addresses, isShared, unavailableReasonOf } from './unavailable-reason.ts';
import { createGrantSigner } from './grant-signer.ts';

/** Sites and Environments at one address. */
function oneAddress(contentUrl: string): Pick<Addresses, 'contentUrl' | 'environmentsContentUrl'> {
  return { contentUrl, environmentsContentUrl: contentUrl };
}

test.each([
  ['http://localhost:3000', 'http://sites.localhost:3001', null],
  ['http://127.0.0.1:3000', 'http://sites.localhost:3001', null],
  ['https://postern.example.com', 'https://postern-sites.example.net', null],
  // Shares example.com.
  ['https://postern.example.com', 'https://sites.example.com', 'registrable domain'],
  ['https://example.com', 'https://sites.example.com', 'registrable domain'],
  ['https://a.example.co.uk', 'https://b.example.co.uk', 'registrable domain'],
  // A suffix of two words is no registrable domain.
  ['https://a.co.uk', 'https://b.co.uk', null],
  // On the Public Suffix List itself: every label is a separate domain.
  ['https://app.github.io', 'https://github.io', null],
  ['https://postern.corp', 'https://sites.corp', null],
  ['https://intranet', 'https://sites.intranet', null],
  ['http://localhost:3000', 'https://sites.example.net', 'SERVICE_UI_URL uses http'],
  ['https://postern.example.com', 'http://sites.localhost:3001', 'SITES_CONTENT_URL uses http'],
  ['https://postern.example.com', 'https://192.0.2.7', 'an IP address'],
  ['https://postern.example.com', 'https://[2001:db8::1]', 'an IP address'],
])('GW-05 private sites with the UI at %s and content at %s: %s', (uiUrl, contentUrl, words) => {
  const addresses = { uiUrl, ...oneAddress(contentUrl), allowSharedApex: false };
  const unavailableReason = unavailableReasonOf(addresses, siteGrants);
  expect(unavailableReason === null ? null : words !== null && unavailableReason.includes(words)).toBe(
    words === null ? null : true,
  );
});

test('GW-05 SITES_ALLOW_SHARED_APEX takes that reason away, and no other', () => {
  const shared = { uiUrl: 'https://postern.example.com', ...oneAddress('https://sites.example.com') };
  expect(unavailableReasonOf({ ...shared, allowSharedApex: true }, siteGrants)).toBeNull();
  expect(isShared(shared, siteGrants)).toBe(true);
  const plain = { ...shared, contentUrl: 'http://sites.localhost:3001', allowSharedApex: true };
  expect(unavailableReasonOf(plain, siteGrants)).toContain('HTTPS');
});

test('GW-05 private sites and private Environments are judged by their own content hosts', () => {
  const addresses = {
    uiUrl: 'https://postern.example.com',
    contentUrl: 'https://sites.example.net',
    environmentsContentUrl: 'https://branches.example.com',
    allowSharedApex: false,
  };
  expect(unavailableReasonOf(addresses, siteGrants)).toBeNull();
  expect(unavailableReasonOf(addresses, environmentGrants)).toMatch(
    /^Private Environments need .* ENVIRONMENTS_CONTENT_URL share a registrable domain/,
  );
  expect([isShared(addresses, siteGrants), isShared(addresses, environmentGrants)]).toEqual([false, true]);
});

function fleetOf(clock: FakeClock) {
  const kv = memoryKv({ clock });
  const signer = createGrantSigner(['a secret of the installation'], systemRandom);
  return (
    holder: string,
    workloads: Workload[],
    more: { allowSharedApex?: boolean; environmentsContentUrl?: string; secret?: string } = {},
  ) =>
    createInstanceRegistry({
      kv,
      signer: more.secret === undefined ? signer : createGrantSigner([more.secret], systemRandom),
      holder,
      workloads,
      addresses: {
        uiUrl: 'https://postern.example.com',
        contentUrl: 'https://sites.example.com',
        environmentsContentUrl: more.environmentsContentUrl ?? 'https://sites.example.com',
        allowSharedApex: more.allowSharedApex ?? true,
      },
    });
}

test('GW-05 browsers are let in only while a gateway is there', async () => {
  const clock = new FakeClock();
  const join = fleetOf(clock);
  const web = join('web-1', ['web']);
  expect(await web.unavailableReason()).toContain('No gateway');
  const gateway = join('gateway-1', ['gateway']);
  await gateway.heartbeat();
  expect(await web.unavailableReason()).toBeNull();
  // It dies without a word.
  clock.advance(91 * second);
  expect(await web.unavailableReason()).toContain('No gateway');
  await gateway.heartbeat();
  expect(await web.unavailableReason()).toBeNull();
  await gateway.leave();
  expect(await web.unavailableReason()).toContain('No gateway');
});

test.each([
  ['the switch', { allowSharedApex: false }],
  ['the address of Environments', { environmentsContentUrl: 'https://branches.example.org' }],
  ['GRANT_SECRET', { secret: 'another secret altogether' }],
])('GW-05 processes that differ in %s let nobody in, until the odd one is gone', async (_what, odd) => {
  const clock = new FakeClock();
  const join = fleetOf(clock);
  const both = join('both', ['web', 'gateway']);
  await both.heartbeat();
  const other = join('other', ['gateway'], odd);
  await other.heartbeat();
  expect(await both.unavailableReason()).toContain('different settings');
  expect(both.disagreement()).toContain('SITES_ALLOW_SHARED_APEX');
  for (let beat = 0; beat < 4; beat += 1) {
    clock.advance(0.5 * minute);
    await both.heartbeat();
  }
  expect(await both.unavailableReason()).toBeNull();
  expect(both.disagreement()).toBeNull();
});

test('more processes than there are places is 503, with a cause that says so', async () => {
  const join = fleetOf(new FakeClock());
  for (let nth = 0; nth < 64; nth += 1) await join(`web-${nth}`, ['web']).heartbeat();
  await expect(join('one too many', ['gateway']).heartbeat()).rejects.toMatchObject({
    code: 'store_unavailable',
    cause: { message: expect.stringContaining('More than 64 processes') },
  });
});

test('plain http on loopback is for trying out: with Keycloak private sites need HTTPS there too', () => {
  const local = {
    uiUrl: 'http://localhost:3000',
    ...oneAddress('http://sites.localhost:3001'),
    allowSharedApex: false,
  };
  expect(unavailableReasonOf(local, siteGrants)).toBeNull();
  expect(unavailableReasonOf({ ...local, hasOtherProvider: true }, siteGrants)).toContain('HTTPS');
});
