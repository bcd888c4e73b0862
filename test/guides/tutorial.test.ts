import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Browser } from '../faults/browser.ts';
import { freePorts } from '../faults/program.ts';
import { missingTools, samplesOf, typeIn } from './guides.ts';

// The second half of docs/tutorial.md, typed letter by letter: one terminal has the server, another one the rest. What its
// first half shows is tested in Chromium: test/browser.
describe.skipIf(missingTools().length > 0)('the tutorial by curl', () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-tutorial-'));
  const end = Promise.withResolvers<void>();
  let origin: string;
  let server: Promise<string> | undefined;
  let settings: Record<string, string>;
  beforeAll(async () => {
    const { web, gateway, operations } = await freePorts();
    origin = `http://localhost:${web}`;
    settings = {
      DATA_DIR: join(folder, 'data'),
      SERVICE_UI_URL: origin,
      PORT: String(web),
      GATEWAY_PORT: String(gateway),
      METRICS_PORT: String(operations),
    };
    const [start = ''] = await samplesOf('tutorial.md', '### 1. Start');
    await new Promise<void>((resolve, reject) => {
      const said = (printed: string) => printed.includes('is ready') && resolve();
      server = typeIn(folder, start, { settings, said, interrupt: end.promise });
      server.catch(reject);
    });
  });
  afterAll(async () => {
    end.resolve();
    await server;
    rmSync(folder, { recursive: true, force: true });
  });

  const type = (script: string) => typeIn(folder, script.replaceAll('http://localhost:3000', origin));

  test('every command works: start, sign in, create a key, publish a site, open it as its owner, revoke the key', async () => {
    const steps = await samplesOf('tutorial.md', '### 2. Sign in');
    const last = await samplesOf('tutorial.md', '### 6. Revoke it');
    const first = steps.slice(0, steps.length - last.length);
    const published = await type([...first, 'declare -p BASE POSTERN_KEY KEY_ID SITE >names'].join('\n'));
    for (const said of [
      /^200\n\{\n {2}"kind": "user"/,
      '"canCreate": true',
      '"keyType": "personal"',
      '"code": "forbidden_scope"',
      /<h1>Hello<\/h1>\n2\n.*<h1>Hello again<\/h1>\n1\n.*<h1>Hello<\/h1>/,
      /"link": "http:\/\/localhost:\d+\/s\/[^]*Not found/,
    ])
      expect(published).toMatch(said);

    const [, url = '', link = ''] = /"url": "(.*)",\s*"link": "(.*)"/.exec(published) ?? [];
    const ada = new Browser(origin);
    await ada.signIn('ada@example.com', 'at least twelve');
    expect((await ada.navigate(link)).headers['location']).toBe(url);
    expect((await ada.open(url)).text).toContain('<h1>Hello</h1>');
    ada.disconnect();

    const revoked = await type(['. ./names', ...last].join('\n'));
    for (const said of ['"invalid_credential"', '"api_key.revoked"', '"status": "deleted"'])
      expect(revoked).toMatch(said);
  });
});
