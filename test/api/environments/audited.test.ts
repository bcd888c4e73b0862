// @module-tag sql
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sql } from '../../../src/platform/database/sql.ts';
import { openShop, type Shop } from './shop.ts';

let shop: Shop;
beforeAll(async () => {
  shop = await openShop();
});
afterAll(() => shop.close());

type Place = { readonly environment: string; readonly build: string };
type Line = { readonly path: (place: Place) => string; readonly body?: object; readonly events: string[] };

/** Every route that changes something, and the events that one request leaves, in this order. */
const lines: Record<string, Line> = {
  createEnvironment: {
    path: () => '/environments',
    body: { repository: 'acme/shop', branch: 'main' },
    events: ['environment.created', 'build.created'],
  },
  changeEnvironment: {
    path: ({ environment }) => `/environments/${environment}`,
    body: { autoTrack: true },
    events: ['environment.changed'],
  },
  removeEnvironment: {
    path: ({ environment }) => `/environments/${environment}`,
    events: ['environment.torn_down'],
  },
  deployEnvironment: {
    path: ({ environment }) => `/environments/${environment}/deploy`,
    events: ['build.created'],
  },
  extendEnvironment: {
    path: ({ environment }) => `/environments/${environment}/extend`,
    body: {},
    events: ['environment.extended'],
  },
  changeOlderBuild: {
    path: ({ environment }) => `/builds/${environment}`,
    body: { commentRuntimeEnv: { LEVEL: 'debug' } },
    events: ['environment.changed'],
  },
  overrideServices: {
    path: ({ environment }) => `/builds/${environment}/services`,
    body: { serviceOverrides: [{ name: 'web', active: false }] },
    events: ['environment.changed'],
  },
  redeployOlderBuild: {
    path: ({ environment }) => `/builds/${environment}/redeploy`,
    events: ['build.created'],
  },
  destroyOlderBuild: {
    path: ({ environment }) => `/builds/${environment}/destroy`,
    events: ['environment.torn_down'],
  },
  cancelBuild: { path: ({ build }) => `/builds/${build}/cancel`, events: ['build.cancelled'] },
  retryBuild: { path: ({ build }) => `/builds/${build}/retry`, events: ['build.created'] },
};

const changing = () =>
  shop.h.app.routes.filter(
    ({ method, path }) => method !== 'GET' && /^\/(?:environments|builds)\b/.test(path),
  );

test('AU-01 this suite covers every route that changes an Environment or a build', () => {
  const names = changing().map(({ operationId }) => operationId);
  expect(names.toSorted()).toEqual(Object.keys(lines).toSorted());
});

test.each(Object.entries(lines))(
  'AU-01 %s leaves its events, with who, what and in which request; without them nothing changes',
  async (operation, { path, body, events }) => {
    const { h, ada } = shop;
    const made = (await shop.create()).data.id as string;
    const [build] = (await shop.call('GET', '/builds', { query: { environment: made } })).data;
    if (operation === 'retryBuild') await shop.call('POST', `/builds/${build.id}/cancel`);
    const method = changing().find(({ operationId }) => operationId === operation)?.method ?? '';
    const ask = () => shop.call(method, path({ environment: made, build: build.id }), body && { body });
    const rows = async () => {
      return await sql`
        select md5(string_agg(text, '' order by text)) as digest from (
          select environments::text as text from environments union all select deploys::text from deploys
          union all select environment_labels::text from environment_labels) everything`.all(h.database.sql);
    };

    const before = await rows();
    await sql`alter table audit_events add constraint nothing_now check (event not like 'environment.%' and event not like 'build.%') not valid`.run(
      h.database.sql,
    );
    expect((await ask()).status).toBeGreaterThanOrEqual(500);
    await sql`alter table audit_events drop constraint nothing_now`.run(h.database.sql);
    expect(await rows()).toEqual(before);

    const answer = await ask();
    expect(answer.status).toBeLessThan(300);
    const requestId = String(answer.headers['x-request-id']);
    const { data: found } = await shop.call('GET', '/audit/events', { query: { requestId } });
    const own = found.toReversed();
    expect(own.map(({ event }: { event: string }) => event)).toEqual(events);
    for (const one of own)
      expect(one).toMatchObject({
        outcome: 'success',
        actor: { kind: 'user', id: ada.user.id, credential: ada.sessionId },
        target: { kind: 'environment', id: operation === 'createEnvironment' ? answer.data.id : made },
      });
  },
);
