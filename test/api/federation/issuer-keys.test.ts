// @module-tag sql
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { hour, minute } from '../../../src/core/clock.ts';
import type { TrustedIssuer } from '../../../src/features/keys/keys.ts';
import type { Fetch } from '../../../src/platform/fetch.ts';
import { type Harness, openHarness } from '../../harness.ts';
import { openPlatform } from '../../id-tokens/platforms.ts';
import { setPolicy } from '../access/cast.ts';

/** The keys of issuers: fetched once for all processes, refreshed every hour, and never older than a day. */
let h: Harness;
let other: Harness;
let asked: string[] = [];
let isDown = false;
let published: unknown[] = [];
let alone = 0;
let issuer: TrustedIssuer;
let platform: ReturnType<typeof openPlatform>;

const network: Fetch = async (url) => {
  asked.push(url);
  if (isDown) throw new Error('The network is down.');
  const { url: own } = issuer;
  if (url === `${own}/.well-known/openid-configuration`)
    return Response.json({ issuer: own, jwks_uri: `${own}/jwks` });
  return Response.json({ keys: published });
};

beforeAll(async () => {
  h = await openHarness({ outboundFetch: network });
  other = await h.another();
});
beforeEach(async () => {
  alone += 1;
  platform = openPlatform('github', `https://issuer-${alone}.example.com`);
  ({ issuer } = platform);
  published = [platform.publicKey];
  isDown = false;
  asked = [];
  await setPolicy(h, { federation: { issuers: [issuer] } });
});
afterAll(async () => {
  await other.close();
  await h.close();
});

const find = (kid: string, on = h) => on.app.services.issuerKeys.find(issuer, kid);
const fetches = () => asked.filter((url) => url.endsWith('/jwks')).length;

test('the first use fetches the keys, and later ones of every process do not', async () => {
  expect(await Promise.all([find(platform.kid), find(platform.kid)])).toEqual([
    platform.publicKey,
    platform.publicKey,
  ]);
  expect(await find(platform.kid, other)).toEqual(platform.publicKey);
  expect(fetches()).toBe(1);
});

test('FE-07 an unknown key causes one fetch a minute, in all processes together', async () => {
  await find(platform.kid);
  h.clock.advance(minute);
  expect([await find('x'), await find('y', other), await find('z')]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(fetches()).toBe(2);
  h.clock.advance(minute - 1);
  expect(await find('x', other)).toBeUndefined();
  expect(fetches()).toBe(2);
  h.clock.advance(1);
  const next = openPlatform('github', issuer.url);
  published = [platform.publicKey, next.publicKey];
  expect(await find(next.kid, other)).toEqual(next.publicKey);
  expect(await find(next.kid)).toEqual(next.publicKey);
  expect(fetches()).toBe(3);
});

test('FE-07 while an issuer is down, its known keys are used for a day, and others are unavailable', async () => {
  await find(platform.kid);
  isDown = true;
  h.clock.advance(24 * hour);
  expect(await find(platform.kid)).toEqual(platform.publicKey);
  expect(await find('x')).toBe('unavailable');
  h.clock.advance(1);
  expect(await find(platform.kid)).toBe('unavailable');
  expect(await find(platform.kid, other)).toBe('unavailable');
  isDown = false;
  h.clock.advance(minute);
  expect(await find(platform.kid, other)).toEqual(platform.publicKey);
  expect(h.logged.some((line) => line.includes('the keys of an issuer could not be fetched'))).toBe(true);
});

test('the worker fetches every hour, so that a withdrawn key ends', async () => {
  await find(platform.kid);
  const next = openPlatform('github', issuer.url);
  published = [next.publicKey];
  h.clock.advance(hour);
  await h.app.jobs.runNow('issuer-keys');
  expect(await find(next.kid)).toEqual(next.publicKey);
  h.clock.advance(minute);
  expect(await find(platform.kid)).toBeUndefined();
});

test('pasted keys replace fetching', async () => {
  issuer = { ...issuer, jwks: { keys: [platform.publicKey] } };
  await setPolicy(h, { federation: { issuers: [issuer] } });
  await h.app.jobs.runNow('issuer-keys');
  expect(await find(platform.kid)).toEqual(platform.publicKey);
  expect(await find('x')).toBeUndefined();
  expect(asked).toEqual([]);
});

test('the keys of a former issuer are removed', async () => {
  await find(platform.kid);
  await setPolicy(h, {});
  await h.app.jobs.runNow('issuer-keys');
  expect(await h.app.services.read.keySets.find(issuer.url)).toBeUndefined();
});
