// @module-tag sql
import { afterAll, beforeAll, expect, test } from 'vitest';
import { minute } from '../../../src/core/clock.ts';
import { browserOf, privateSite } from '../../gateway/private.ts';
import { type Harness, openHarness, type Person, settings } from '../../harness.ts';

// SE-03, as people and scripts see it: processes with older and newer secrets over one database and one store.
const fresh = (name: string) => `a-new-value-of-${name}-for-this-test-0123456789`;
const older = settings.grantSecrets;
let h: Harness;
let ada: Person;
const peers: Harness[] = [];
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000 });
  ada = await h.person('Ada');
});
afterAll(async () => {
  for (const one of peers) await one.close();
  await h.close();
});

async function another(secrets: NonNullable<Parameters<Harness['another']>[0]>['secrets'] = {}) {
  const made = await h.another({ secrets });
  peers.push(made);
  return made;
}

test('SE-03 keys work throughout; GRANT_SECRET: in the order of the guide every private site stays open, and the older value is refused at the end', async () => {
  const site = await privateSite(h, ada);
  const browser = browserOf(h, ada);
  expect((await browser.open(site.url)).status).toBe(200);
  const cookie = browser.cookies(site.url);
  const headers = { cookie, 'sec-fetch-mode': 'no-cors' };

  // Keys have no secret of ours behind them (contract 4): no rotation ever concerns one.
  const key = await h.key(ada);
  const allNew = { sessionSecrets: [fresh('session')], encryptionKeys: settings.encryptionKeys };
  const elsewhere = await another({ ...allNew, grantSecrets: older });
  expect((await elsewhere.call('GET', '/auth/context', { as: key })).status).toBe(200);

  // First the new secret is last: processes with and without it give access alike.
  const learnt = await another({ grantSecrets: [...older, fresh('grant')] });
  expect((await learnt.open(site.url, { headers })).statusCode).toBe(200);
  h.clock.advance(minute);
  expect((await browserOf(learnt, ada).open(site.url)).status).toBe(200);
  await learnt.settle();

  // Then first, while the others still sign with the older one.
  await h.app.services.grantServices.stop();
  const signing = await another({ grantSecrets: [fresh('grant'), ...older] });
  expect((await signing.open(site.url, { headers })).statusCode).toBe(200);
  const visitor = browserOf({ ...signing, open: learnt.open }, ada);
  h.clock.advance(minute);
  expect((await visitor.open(site.url)).status).toBe(200);

  // Removed: grants of the older secret give no access, and the link opens the site again.
  await learnt.app.services.grantServices.stop();
  await signing.app.services.grantServices.stop();
  const last = await another({ grantSecrets: [fresh('grant')] });
  expect((await last.open(site.url, { headers })).statusCode).toBe(401);
  h.clock.advance(2 * minute);
  expect((await browserOf(last, ada).open(site.url)).status).toBe(200);
});
