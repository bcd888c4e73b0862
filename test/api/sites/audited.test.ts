// @module-tag sql
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sql } from '../../../src/platform/database/sql.ts';
import { tarBlocks, tarEnd } from '../../archives/tar.ts';
import type { Route } from '../../../src/platform/http.ts';
import { type Answer, type CallOptions, type Harness, openHarness, type Person } from '../../harness.ts';
import { contents } from '../access/cast.ts';
import { announced, archiveOf, page, replace, send, sha256, start, upload } from './uploads.ts';

/** Like test/api/limits/audited.test.ts, for changes of sites and their configuration. */
let h: Harness;
let root: Person;
let ada: Person;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 100_000 });
  root = await h.person('Root', { admin: true });
  ada = await h.person('Ada');
});
afterAll(() => h.close());

/** One use of a route by the person who may, ready to be sent; `target` when it is not the site. */
type Sent = Omit<CallOptions, 'as'>;
type Use = Sent & { readonly as: Person; readonly path: string; readonly target?: string };
type Drill = { readonly event: string; readonly prepare: () => Promise<Use> };

const files = { 'index.html': page('one') };
const site = async () => (await upload(h, ada, files)).data.id as string;
const onSite =
  (path: string, more: Sent = {}, before?: (id: string) => Promise<unknown>) =>
  async () => {
    const id = await site();
    await before?.(id);
    return { as: ada, path: `/sites/${id}${path}`, target: id, ...more };
  };
const asRoot = (path: string, before?: (id: string) => Promise<unknown>) => async () => ({
  ...(await onSite(path, { body: { reason: 'reported' } }, before)()),
  as: root,
});
const config = async () => {
  const { data, headers } = await h.call('GET', '/config/sites', { as: root });
  return { value: data.config, headers: { 'if-match': String(headers['etag']) } };
};
const changedConfig = async () => {
  const { value, headers } = await config();
  const body = { ...value, cleanup: { intervalMinutes: value.cleanup.intervalMinutes + 1 } };
  return { as: root, path: '/config/sites', headers, body, target: 'sites' };
};

/** How each route that changes something is used, and the event it leaves. A new route without a line here fails. */
const drills: Record<string, Drill> = {
  createSite: {
    event: 'site.created',
    prepare: async () => ({ as: ada, path: '/sites', raw: archiveOf(files) }),
  },
  changeSite: { event: 'site.visibility_changed', prepare: onSite('', { body: { visibility: 'public' } }) },
  replaceSiteContent: {
    event: 'site.published',
    prepare: onSite('/content', { raw: archiveOf({ 'index.html': page('two') }) }),
  },
  extendSite: { event: 'site.extended', prepare: onSite('/extend') },
  deleteSite: { event: 'site.deleted', prepare: onSite('') },
  restoreSite: {
    event: 'site.restored',
    prepare: onSite('/restore', {}, (id) => h.call('DELETE', `/sites/${id}`, { as: ada })),
  },
  publishSiteVersion: {
    event: 'site.rolled_back',
    prepare: onSite('/versions/1/publish', {}, (id) => replace(h, ada, id, { 'index.html': page('two') })),
  },
  previewSiteVersion: { event: 'site.previewed', prepare: onSite('/versions/1/preview') },
  publishUpload: {
    event: 'site.published',
    async prepare() {
      const id = await site();
      const begun = await start(h, ada, id, { 'index.html': page('sent') });
      const at = `/sites/${id}/uploads/${begun.data.id}`;
      await send(h, ada, at, page('sent'));
      return { as: ada, path: `${at}/publish`, body: {}, target: id };
    },
  },
  endSiteGrants: { event: 'site.grants_ended', prepare: onSite('/grants') },
  takeSiteDown: { event: 'site.taken_down', prepare: asRoot('/take-down') },
  putSiteBack: {
    event: 'site.put_back',
    prepare: asRoot('/put-back', (id) =>
      h.call('POST', `/sites/${id}/take-down`, { as: root, body: { reason: 'reported' } }),
    ),
  },
  changeSitesConfig: { event: 'config.sites.changed', prepare: changedConfig },
  revertSitesConfig: {
    event: 'config.sites.reverted',
    async prepare() {
      const { path, ...changed } = await changedConfig();
      await h.call('PUT', path, changed);
      const { headers } = await config();
      return { as: root, path: `${path}/revert`, headers, body: { version: 0 }, target: 'sites' };
    },
  },
};

/** Steps of an upload change nothing that anyone could see before it is published. */
const unaudited = ['startUpload', 'sendContent', 'sendContents'];

const changing = (): Route[] =>
  h.app.routes.filter(({ method, path }) => method !== 'GET' && /^\/(?:config\/)?sites\b/.test(path));
const sorted = (names: readonly string[]) => names.toSorted((a, b) => a.localeCompare(b));

function perform(operation: string, { path, target: _target, ...options }: Use): Promise<Answer> {
  const { method } = changing().find(({ operationId }) => operationId === operation) as Route;
  return h.call(method, path, options);
}

const eventsOf = async (answer: Answer) =>
  (await h.app.services.audit.search({ requestId: String(answer.headers['x-request-id']) }, undefined, 100))
    .events;

describe('AU-01 a change of a site leaves one event', () => {
  test('AU-01 this suite covers every route that changes a site', () => {
    const names = changing().map(({ operationId }) => operationId);
    expect(sorted(names)).toEqual(sorted([...Object.keys(drills), ...unaudited]));
  });

  test.each(Object.entries(drills))(
    'AU-01 %s: exactly one, with who, by which session, what and in which request; refused ones leave none',
    async (operation, { event, prepare }) => {
      const use = await prepare();
      const refused = await perform(operation, {
        ...use,
        as: use.as === root ? ada : root,
        ...stray(operation),
      });
      await h.app.services.denials.flush({ all: true });
      const left = (await eventsOf(refused)).filter(({ outcome }) => outcome === 'success');
      expect([operation, refused.status >= 400, left]).toEqual([operation, true, []]);
      const answer = await perform(operation, use);
      expect(answer.status).toBeLessThan(300);
      const target = use.target ?? answer.data.id;
      expect(await eventsOf(answer)).toMatchObject([
        {
          event,
          actor: { kind: 'user', id: use.as.user.id, credential: use.as.sessionId },
          target: { id: target },
          outcome: 'success',
          requestId: answer.headers['x-request-id'],
          at: h.clock.now(),
        },
      ]);
    },
  );

  test('AU-01 the event of a change by a key names the key, and a request without a change leaves no event', async () => {
    const key = await h.serviceKey({ scopes: ['sites:write'], name: 'deployer' });
    const made = await upload(h, key, files);
    expect(await eventsOf(made)).toMatchObject([
      { event: 'site.created', actor: { id: key.id, name: 'deployer', credential: key.id } },
    ]);
    const { name } = made.data;
    const same = await h.call('PATCH', `/sites/${made.data.id}`, { as: key, body: { name } });
    const again = await h.call('POST', `/sites/${made.data.id}/versions/1/publish`, { as: key });
    for (const answer of [same, again]) expect([answer.status, await eventsOf(answer)]).toEqual([200, []]);
    const id = await site();
    const first = await h.call('DELETE', `/sites/${id}`, { as: ada });
    const second = await h.call('DELETE', `/sites/${id}`, { as: ada });
    expect([(await eventsOf(first)).length, (await eventsOf(second)).length]).toEqual([1, 0]);
  });

  test('AU-01 a step of an upload leaves no event: nothing is visible before the publication', async () => {
    const id = await site();
    const content = { 'index.html': page('in a tar'), 'b.html': page('alone') };
    const begun = await start(h, ada, id, content);
    const at = `/sites/${id}/uploads/${begun.data.id}`;
    const alone = await send(h, ada, at, content['b.html']);
    const part = { name: sha256(content['index.html']), content: content['index.html'] };
    const bytes = Buffer.concat([tarBlocks([part]), tarEnd]);
    const many = await h.call('PUT', `${at}/blobs`, { as: ada, raw: { type: 'application/x-tar', bytes } });
    expect(many.data.missing).toEqual([]);
    for (const answer of [begun, alone, many]) expect(await eventsOf(answer)).toEqual([]);
    expect(Object.keys(announced(content))).toHaveLength(begun.data.missing.length);
  });
});

/** Makes a request invalid for every caller: creating a site is refused only to its own author. */
function stray(operation: string): Sent {
  return operation === 'createSite' ? { raw: { type: 'application/zip', bytes: 'no archive' } } : {};
}

describe('AU-03 a change of a site whose event cannot be written', () => {
  test.each(Object.entries(drills))(
    'AU-03 %s: is not made, and the answer is 503',
    async (operation, { prepare }) => {
      const use = await prepare();
      await sql`alter table audit_events add constraint out_of_order check (false) not valid`.run(
        h.database.sql,
      );
      const before = await contents(h);
      try {
        const answer = await perform(operation, use);
        expect([answer.status, answer.error.code]).toEqual([503, 'store_unavailable']);
        expect(await contents(h)).toEqual(before);
      } finally {
        await sql`alter table audit_events drop constraint out_of_order`.run(h.database.sql);
      }
      expect((await perform(operation, use)).status).toBeLessThan(300);
    },
  );
});

describe('the name of a site belongs to its owner', () => {
  const secret = 'Merger with Contoso';
  const shown = async (id: string) => {
    await h.app.services.denials.flush({ all: true });
    await h.app.services.chainWriter.run();
    const query = { target: id };
    const list = await h.call('GET', '/audit/events', { as: root, query: { ...query, limit: '100' } });
    const one = await h.call('GET', `/audit/events/${list.data[0].id}`, { as: root });
    const exports = await Promise.all(
      ['ndjson', 'csv'].map((format) =>
        h.call('GET', '/audit/export', { as: root, query: { ...query, format } }),
      ),
    );
    return { events: list.data, text: [list, one, ...exports].map(({ text }) => text).join('\n') };
  };

  test('no event of a site’s whole life has its name', async () => {
    const { data } = await upload(h, ada, files, { name: secret });
    const at = `/sites/${data.id}`;
    await h.call('PATCH', at, { as: ada, body: { name: `${secret}, 2` } });
    for (const visibility of ['public', 'private'])
      await h.call('PATCH', at, { as: ada, body: { visibility, name: `${secret} ${visibility}` } });
    await replace(h, ada, data.id, { 'index.html': page('two') });
    await h.call('POST', `${at}/extend`, { as: ada });
    for (const verb of ['take-down', 'put-back'])
      await h.call('POST', `${at}/${verb}`, { as: root, body: { reason: 'reported' } });
    await h.call('DELETE', `${at}/grants`, { as: ada });
    await h.call('DELETE', at, { as: ada });
    await h.call('POST', `${at}/restore`, { as: ada });
    await h.call('DELETE', at, { as: ada });
    h.clock.advance(60 * 86_400_000);
    await h.app.services.sitesServices.siteCleanup.run();
    root = await h.person('Root again', { admin: true });
    const { events, text } = await shown(data.id);
    expect(events.length).toBeGreaterThan(10);
    expect(text).toContain(data.id);
    expect(text).not.toContain(secret);
    const renamed = events.filter(({ details }: { details: { renamed?: true } }) => details.renamed);
    expect(renamed).toHaveLength(3);
    const stored = await sql<{ found: number }>`
      select count(*)::int as found from audit_events where details::text like ${`%${secret}%`}`.first(
      h.database.sql,
    );
    expect(stored?.found).toBe(0);
  });

  test('an event of an earlier build with the name is shown without it, and says so', async () => {
    const id = 'k3v9x0q2m7';
    const facts = { name: secret, visibility: 'private' };
    await h.app.services.tx(({ audit }) =>
      audit.append({
        event: 'site.changed',
        auditContext: { actor: { kind: 'system', id: null, name: null, credential: null }, origin: nowhere },
        target: { kind: 'site', id },
        outcome: 'success',
        details: { before: facts, after: { ...facts, name: `${secret}, 2` } },
      }),
    );
    const { events, text } = await shown(id);
    expect(text).not.toContain(secret);
    expect(events[0]).toMatchObject({
      details: { before: { visibility: 'private' }, after: { visibility: 'private' } },
      withheld: ['details.before.name', 'details.after.name'],
    });
  });
});

const nowhere = { requestId: null, address: null, agent: null };
