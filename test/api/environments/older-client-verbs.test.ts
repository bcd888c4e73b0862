import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TestKey } from '../../harness.ts';
import { archiveOf, formOf, page } from '../sites/uploads.ts';
import { openShop, type Shop } from './shop.ts';

// The calls of the older system's own command line, verb by verb, as its documentation has them. Its requests carry an access
// token; a key with the same scopes stands for it here. docs/reference/older-clients.md says what the answers mean.
let shop: Shop;
let key: TestKey;
let site = '';

beforeAll(async () => {
  shop = await openShop();
  key = await shop.h.key(await shop.h.person('Cleo'), { scopes: ['env:write', 'sites:write', 'repos:read'] });
  const { data } = await shop.create({ name: 'older', access: 'members' }, key);
  await shop.settle(data.id);
});
afterAll(() => shop.close());

const form = formOf([
  { name: 'name', value: 'Handbook' },
  {
    name: 'file',
    fileName: 'site.zip',
    type: 'application/zip',
    value: archiveOf({ 'index.html': page('one') }).bytes,
  },
]);

type Call = [verb: string, status: number, method: string, path: string, sent?: object];

/** In an order in which each finds what it needs; `SITE` is the site that `sites create` made. */
const calls: Call[] = [
  ['whoami', 200, 'GET', '/auth/context'],
  ['builds list', 200, 'GET', '/builds?page=1&limit=25'],
  ['builds find', 200, 'GET', '/environments?search=old'],
  ['builds get, status, open', 200, 'GET', '/builds/older'],
  ['builds open, links', 200, 'GET', '/builds/older/metadata'],
  ['builds set', 200, 'PATCH', '/builds/older', { body: { trackDefaultBranches: true } }],
  ['builds update-uuid', 400, 'PATCH', '/builds/older', { body: { uuid: 'newer' } }],
  ['builds env set', 200, 'PATCH', '/builds/older', { body: { commentRuntimeEnv: { A: '1' } } }],
  ['builds webhooks', 404, 'GET', '/builds/older/webhooks'],
  ['builds webhooks, run', 404, 'PUT', '/builds/older/webhooks'],
  [
    'services enable, disable',
    200,
    'PATCH',
    '/builds/older/services',
    { body: { serviceOverrides: [{ name: 'web', active: true }] } },
  ],
  ['services history', 200, 'GET', '/builds/older/services/web/build-jobs'],
  ['services history, deploys', 404, 'GET', '/builds/older/services/web/deploy-jobs'],
  ['services redeploy', 404, 'PUT', '/builds/older/services/web/redeploy'],
  ['services destroy', 404, 'PUT', '/builds/older/services/web/destroy'],
  ['pods list', 404, 'GET', '/builds/older/pods'],
  ['pods list, of a service', 404, 'GET', '/builds/older/services/web/pods'],
  // The parameter is called repository here.
  ['schema validate, of a branch', 400, 'GET', '/schema/validate?repo=acme/shop&branch=main'],
  ['builds redeploy', 200, 'PUT', '/builds/older/redeploy'],
  ['builds destroy', 200, 'PUT', '/builds/older/destroy'],
  ['sites create', 201, 'POST', '/sites', { raw: form }],
  ['sites list', 200, 'GET', '/sites'],
  ['sites get', 200, 'GET', '/sites/SITE'],
  ['sites update', 200, 'PUT', '/sites/SITE/content', { raw: archiveOf({ 'index.html': page('two') }) }],
  ['sites extend', 200, 'POST', '/sites/SITE/extend'],
  ['sites delete', 200, 'DELETE', '/sites/SITE'],
];

test.each(calls)('%s: %i for %s %s', async (verb, status, method, path, sent = {}) => {
  const answer = await shop.call(method, path.replace('SITE', site), { as: key, ...sent });
  expect({ status: answer.status, error: answer.error?.code }).toMatchObject({ status });
  // The envelope that it reads, also of a refusal.
  expect(JSON.parse(answer.text)).toMatchObject({ request_id: expect.any(String) });
  if (verb === 'sites create') site = answer.data.id;
});
