import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { hour, minute, second } from '../../src/core/clock.ts';
import { page } from '../api/sites/uploads.ts';
import { contentUrl, type Harness, openHarness, type Person } from '../harness.ts';
import {
  change,
  changeAccess,
  environmentOf,
  setService,
  switchEnvironments,
  unusedUrl,
  urlOf,
} from './environment.ts';
import { navigation } from './private.ts';

let h: Harness;
let admin: Person;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000 });
  admin = await h.person('Ada', { admin: true });
});
beforeEach(() => switchEnvironments(h, admin));
afterAll(() => h.close());

const files = {
  'index.html': page('home'),
  'about.html': page('about'),
  '404.html': page('no such page'),
  _headers: '/*\n  Referrer-Policy: no-referrer\n  X-Robots-Tag: all\n',
  _redirects: '/old /about 302\n',
};

describe('a public Environment', () => {
  test('serves a static service like a site, and asks search engines not to index it', async () => {
    const { urlOf: url } = await environmentOf(h, admin, { services: { web: { files } } });
    const home = await h.open(url('web'));
    expect([home.statusCode, home.body]).toEqual([200, files['index.html']]);
    expect(home.headers).toMatchObject({
      'cache-control': 'public, max-age=0, must-revalidate',
      'x-content-type-options': 'nosniff',
      'x-robots-tag': 'noindex',
      'referrer-policy': 'no-referrer',
      etag: expect.stringMatching(/^"[0-9a-f]{32}"$/),
    });
    const again = await h.open(url('web'), { headers: { 'if-none-match': String(home.headers.etag) } });
    expect(again.statusCode).toBe(304);
    const old = await h.open(`${url('web')}old`);
    expect([old.statusCode, old.headers.location]).toEqual([302, '/about']);
    const missing = await h.open(`${url('web')}nothing`);
    expect([missing.statusCode, missing.body]).toEqual([404, files['404.html']]);
    expect((await h.open(url('web'), { method: 'POST' })).statusCode).toBe(405);
  });

  test('serves the start page of an app for paths that a person opens', async () => {
    const { urlOf: url } = await environmentOf(h, admin, {
      services: { web: { files: { 'index.html': page('app') }, spa: true } },
    });
    expect((await h.open(`${url('web')}orders/7`, { headers: navigation })).statusCode).toBe(200);
    expect((await h.open(`${url('web')}orders/7`)).statusCode).toBe(404);
  });

  test('has a host for each exposed service only', async () => {
    const { urlOf: url } = await environmentOf(h, admin, {
      services: {
        web: { files },
        admin: { files: { 'index.html': page('admin') } },
        hidden: { files, isExposed: false },
        db: { kind: 'postgres' },
        docs: { kind: 'external' },
      },
    });
    expect((await h.open(url('admin'))).body).toContain('admin');
    for (const name of ['hidden', 'db', 'docs', 'nobody'])
      expect((await h.open(url(name))).statusCode).toBe(404);
  });

  test('serves new files after a deploy, at once', async () => {
    const made = await environmentOf(h, admin, { services: { web: { files } } });
    expect((await h.open(made.urlOf('web'))).body).toContain('home');
    const other = await environmentOf(h, admin, {
      services: { web: { files: { 'index.html': page('new') } } },
    });
    const rows = await h.app.services.read.serving.findLabel(other.label);
    await setService(h, made.id, 'web', { artifact_id: rows?.services.get('web')?.artifactId });
    expect((await h.open(made.urlOf('web'))).body).toContain('new');
  });
});

describe('an Environment that is not ready', () => {
  test('says which step it is at, and asks the browser to try again', async () => {
    const { urlOf: url } = await environmentOf(h, admin, {
      status: 'building',
      services: { web: { status: 'building', reason: 'npm <ci> runs' } },
    });
    const shown = await h.open(url('web'));
    expect([shown.statusCode, shown.headers['retry-after'], shown.headers.refresh]).toEqual([503, '5', '5']);
    expect(shown.body).toContain('web is being built');
    expect(shown.body).toContain('npm &lt;ci&gt; runs');
    expect(shown.headers['cache-control']).toBe('private, no-store');
  });

  test('shows that a process is starting while it has no address', async () => {
    const { urlOf: url } = await environmentOf(h, admin, {
      services: { api: { kind: 'process', status: 'starting' } },
    });
    const shown = await h.open(url('api'));
    expect([shown.statusCode, shown.body]).toEqual([503, expect.stringContaining('api is starting')]);
  });
});

describe('an Environment that ended', () => {
  test.each(['tearing_down', 'torn_down'])('that is %s says so with 410', async (status) => {
    const { id, urlOf: url } = await environmentOf(h, admin, { services: { web: { files } } });
    expect((await h.open(url('web'))).statusCode).toBe(200);
    await change(h, id, { status });
    const gone = await h.open(url('web'));
    expect([gone.statusCode, gone.body]).toEqual([
      410,
      expect.stringContaining('This Environment has ended'),
    ]);
    expect(gone.headers['cache-control']).toBe('private, no-store');
  });

  test('ends with its lease to the second, before any job runs', async () => {
    const { urlOf: url } = await environmentOf(h, admin, { services: { web: { files } }, ttlMs: hour });
    h.clock.advance(hour - 1);
    expect((await h.open(url('web'))).statusCode).toBe(200);
    h.clock.advance(1);
    expect((await h.open(url('web'))).statusCode).toBe(410);
  });

  test('serves nothing at an earlier label', async () => {
    const made = await environmentOf(h, admin, { services: { web: { files } } });
    const label = await changeAccess(h, made, 'members');
    const again = await changeAccess(h, { ...made, label }, 'public');
    expect((await h.open(urlOf(`web-${again}`))).statusCode).toBe(200);
    for (const old of [made.label, label]) {
      const answer = await h.open(urlOf(`web-${old}`), { headers: navigation });
      expect([answer.statusCode, answer.headers.location]).toEqual([
        303,
        expect.stringContaining('/environments/open?label=web-'),
      ]);
    }
  });
});

describe('the switch of the Environment policy', () => {
  test('closes every host at once, and opens it again', async () => {
    const made = await environmentOf(h, admin, { services: { web: { files } } });
    const hosts = [made.urlOf('web'), unusedUrl()];
    await switchEnvironments(h, admin, { enabled: false });
    for (const url of hosts) {
      const answer = await h.open(url, { headers: navigation });
      expect([answer.statusCode, answer.headers.location]).toEqual([404, undefined]);
    }
    await switchEnvironments(h, admin);
    expect((await h.open(made.urlOf('web'))).statusCode).toBe(200);
  });

  test('closes and opens the hosts of a separate gateway within a second', async () => {
    const made = await environmentOf(h, admin, { services: { web: { files } } });
    const alone = await h.gatewayAlone();
    expect((await alone.open(made.urlOf('web'))).body).toContain('home');
    await switchEnvironments(h, admin, { enabled: false });
    await alone.feed.poll();
    await expect.poll(async () => (await alone.open(made.urlOf('web'))).statusCode).toBe(404);
    await alone.stop();
  });

  test('Sites being off does not close Environments', async () => {
    const made = await environmentOf(h, admin, { services: { web: { files } } });
    const { data, headers } = await h.call('GET', '/config/sites', { as: admin });
    const put = (enabled: boolean, etag: string | undefined) =>
      h.call('PUT', '/config/sites', {
        as: admin,
        headers: { 'if-match': etag ?? '' },
        body: { ...data.config, enabled },
      });
    const off = await put(false, headers['etag']);
    expect(off.status).toBe(200);
    expect((await h.open(made.urlOf('web'))).statusCode).toBe(200);
    await put(true, off.headers['etag']);
  });
});

test('a gateway that misses changes for 30 seconds serves no Environment', async () => {
  const made = await environmentOf(h, admin, { services: { web: { files } } });
  const alone = await h.gatewayAlone();
  expect((await alone.open(made.urlOf('web'))).statusCode).toBe(200);
  const { lastReadAt } = alone.feed;
  h.clock.advance(31 * second);
  expect(h.clock.now() - lastReadAt()).toBeGreaterThan(30 * second);
  await expect(alone.hasNews()).rejects.toThrow('too long');
  await alone.stop();
});

test('a key in a request to an Environment is refused, and its owner is notified', async () => {
  const made = await environmentOf(h, admin, { services: { web: { files } } });
  const key = await h.serviceKey();
  const answer = await h.open(made.urlOf('web'), { headers: { authorization: `Bearer ${key.value}` } });
  expect(answer.statusCode).toBe(400);
  expect(answer.body).not.toContain(key.value);
});

test('only the host decides what a request is for', async () => {
  const { host } = new URL(contentUrl);
  const open = (name: string) => h.open(`http://${name}.${host}/`);
  const label = 'eabcdefghijklmnopq';
  for (const name of [label, `-${label}`, `a.web-${label}`, `web-${label}a`, `web_${label}`])
    expect([404, 421]).toContain((await open(name)).statusCode);
  expect((await open(`web-${label}`)).statusCode).not.toBe(404);
  h.clock.advance(minute);
});
