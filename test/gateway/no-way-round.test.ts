import { afterAll, beforeAll, expect, test } from 'vitest';
import { minute } from '../../src/core/clock.ts';
import { page, upload } from '../api/sites/uploads.ts';
import { type Harness, openHarness, type Person } from '../harness.ts';
import { browserOf, navigation, privateSite } from './private.ts';

/** Words of a client that a gateway of another make would believe. */
let h: Harness;
let ada: Person;
let open: string;
let hidden: string;
beforeAll(async () => {
  h = await openHarness();
  ada = await h.person('Ada');
  const files = { 'index.html': page('content') };
  ({ url: open } = (await upload(h, ada, files, { visibility: 'public' })).data);
  ({ url: hidden } = await privateSite(h, ada, files));
});
afterAll(() => h.close());

const claims: Record<string, string>[] = [
  { 'x-forwarded-host': 'localhost:3000' },
  { 'x-forwarded-uri': '/app.js' },
  { 'x-original-url': '/.postern/grant' },
  { 'x-rewrite-url': '/.postern/grant' },
  { 'x-forwarded-for': '127.0.0.1' },
  { 'x-real-ip': '127.0.0.1' },
  { 'x-forwarded-proto': 'https' },
  { 'x-forwarded-user': 'ada@example.com' },
  { 'x-auth-request-email': 'ada@example.com' },
  { forwarded: 'for=127.0.0.1;host=localhost:3000;proto=https' },
  { 'x-http-method-override': 'POST' },
  { 'user-agent': 'kube-probe/1.30' },
  { 'user-agent': 'GoogleHC/1.0' },
  { 'user-agent': 'ELB-HealthChecker/2.0' },
];

test('GW-03 GW-04 no header opens a private site, or changes the answer of a public one', async () => {
  const shape = async (url: string, headers: Record<string, string>) => {
    const { statusCode, payload, headers: told } = await h.open(url, { headers });
    const { date: _date, 'set-cookie': _cookie, location = '', ...rest } = told;
    // The ticket and what binds the browser are new each time.
    return { statusCode, payload, rest, location: String(location).split('?')[0] };
  };
  for (const [url, base] of [
    [open, {}],
    [hidden, navigation],
    [hidden, { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }],
  ] as const) {
    const plain = await shape(url, base);
    for (const claim of claims)
      expect([claim, await shape(url, { ...base, ...claim })]).toEqual([claim, plain]);
  }
});

test('GW-04 paths and queries that other services leave unprotected are protected', async () => {
  for (const path of [
    'healthz',
    'ready',
    'ping',
    'metrics',
    'favicon.ico',
    'robots.txt',
    '.well-known/x',
    '.postern/x',
  ]) {
    for (const query of ['', '?health=1', '?/index.html', '?skip_auth=true']) {
      const answer = await h.open(hidden + path + query, { headers: { 'sec-fetch-mode': 'cors' } });
      expect([path, query, answer.statusCode, answer.payload]).toEqual([path, query, 401, '']);
    }
  }
});

test('GW-07 a sign-in for a site ends at that site, whatever its address contains', async () => {
  const paths = [
    '//evil.example/',
    '/\\evil.example/',
    '/%5cevil.example/',
    '/%0d%0alocation:%20http://evil.example/',
    '/@evil.example/',
    '/?returnTo=http://evil.example/&url=//evil.example',
    '/.postern/redeem?returnTo=http://evil.example',
  ];
  for (const path of paths) {
    h.clock.advance(minute);
    const browser = browserOf(h, ada);
    const first = await browser.navigate(hidden.slice(0, -1) + path);
    const to = new URL(first.headers['location'] ?? '');
    expect([path, first.status, to.origin]).toEqual([path, 303, 'http://localhost:3000']);
    const { target, code } = await browser.handOver(to.href);
    const back = await browser.redeem(target, code);
    expect([path, new URL(back.headers['location'] ?? '').host]).toEqual([path, new URL(hidden).host]);
  }
});
