import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand } from '../faults/program.ts';
import { type Guides, missingTools, openGuides, samplesOf } from './guides.ts';

// What the guides for an emergency tell people to type is typed here, against the real program, letter by letter.
describe.skipIf(missingTools().length > 0)('the samples of the guides', () => {
  let guides: Guides;
  let origin: string;
  beforeAll(async () => {
    guides = await openGuides();
    origin = guides.origin;
  });
  afterAll(() => guides.close());
  const bash = (script: string, input = '') => guides.bash(script, { input });
  const makeKey = (name: string) => guides.makeKey(name);

  async function auditLogOf(keyId: string): Promise<{ event: string; keyIds: string[] }[]> {
    const read = await bash(`curl -s -b jar '${origin}/api/v2/audit/events?keyId=${keyId}&limit=100'`);
    return (JSON.parse(read) as { data: { event: string; keyIds: string[] }[] }).data;
  }

  test('change a setting, verify it, and go back', async () => {
    const script = (await samplesOf('how-to/change-settings-safely.md')).join('\n');
    const printed = await bash(script);
    expect(printed).toContain('version 0, 600 requests a minute');
    expect(printed).toMatch(/"version": 1[^]*true[^]*"version": 2/);
    const now = await bash(`curl -s -b jar ${origin}/api/v2/me/tokens/policy`);
    expect(JSON.parse(now)).toMatchObject({ data: { rateLimit: { requestsPerMinute: 600 } } });
  });

  test('reset the passkeys of another person', async () => {
    const page = 'how-to/sign-in-with-a-passkey.md';
    const [script = ''] = await samplesOf(page, '## Reset the passkeys of another person');
    await bash(
      `curl -sf -b jar -H 'Origin: ${origin}' --json '{"email":"grace@example.com","name":"Grace"}' '${origin}/api/v2/users'`,
    );
    expect(JSON.parse(await bash(script))).toMatchObject({ email: 'grace@example.com', enabled: true });
    const read = await bash(`curl -s -b jar '${origin}/api/v2/audit/events?event=user.passkeys_reset'`);
    expect(JSON.parse(read)).toMatchObject({ data: [{ details: { passkeys: 0 } }] });
  });

  test('raise the limit of sign-ins from one address', async () => {
    const [script = ''] = await samplesOf('how-to/reset-a-password.md', '## Too many sign-ins');
    const printed = await bash(script);
    expect(printed).toMatch(/"addressesOverLimit": 0[^]*"version": 1/);
    const now = await bash(`curl -s -b jar ${origin}/api/v2/config/access`);
    expect(JSON.parse(now)).toMatchObject({ data: { config: { signInsPerAddressPerMinute: 300 } } });
  });

  test.skipIf(missingTools('python3').length > 0)(
    'scan for keys: the rule finds a key, and the checksum takes no other text for one',
    async () => {
      const page = readFileSync(join(import.meta.dirname, '../../docs/how-to/scan-for-keys.md'), 'utf8');
      const [, python = ''] = /```python\n([^]*?)```/.exec(page) ?? [];
      const kit = readFileSync(join(import.meta.dirname, '../../deploy/leak-kit/gitleaks.toml'), 'utf8');
      const [, rule = ''] = /regex = '''(.*)'''/.exec(kit) ?? [];
      const { token } = await makeKey('scanned');
      const wrong = `${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`;
      writeFileSync(
        join(guides.folder, 'scan.py'),
        `${python}
rule = re.compile(r"${rule}")
for text in ["${token}", "${wrong}", "${token}0"]:
    print(len(rule.findall(f"key: {text}.")), is_key(text))
`,
      );
      expect(await bash('python3 scan.py')).toBe('1 True\n1 False\n1 False\n');
    },
  );

  test('RV-04 respond to a leak: revoked, replaced, verified, and the audit log shows both keys', async () => {
    const [
      revokeSelf = '',
      revokeById = '',
      revokeAll = '',
      replace = '',
      verify = '',
      read = '',
      watch = '',
      off = '',
      back = '',
    ] = await samplesOf('how-to/respond-to-a-leak.md');
    const leaked = await makeKey('deploy');
    expect(await bash(revokeSelf, `${leaked.token}\n`)).not.toContain('"code"');
    const base = `BASE=${origin}\nKEY_ID=${leaked.id}\n`;
    const use = (token: string) =>
      bash(
        `curl -s -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer ${token}' ${origin}/api/v2/auth/context`,
      );
    expect(await use(leaked.token)).toBe('401');

    const second = await makeKey('another');
    await bash(`BASE=${origin}\n${revokeById.replace('KEY_ID=…', `KEY_ID=${second.id}`)}`);
    expect(await use(second.token)).toBe('401');

    const replaced = await bash(`${base}${replace}\n${verify}\necho "token=$POSTERN_KEY"`);
    expect(replaced).toContain('"repos:read"');
    const token = /token=(\S+)/.exec(replaced)?.[1] ?? '';
    expect(await use(token)).toBe('200');

    const story = await bash(`${base}${read}`);
    expect(story).toContain('api_key.created');
    expect(story).toContain('api_key.revoked');
    expect(await bash(`${base}${watch}`)).not.toContain('error');
    const mine = JSON.parse(await bash(`curl -s -b jar '${origin}/api/v2/me/tokens?limit=100'`)) as {
      data: { id: string; name: string }[];
    };
    const next = mine.data.find(({ name }) => name === 'deploy, after the leak')?.id ?? '';
    expect((await auditLogOf(leaked.id)).map(({ event }) => event)).toEqual(
      expect.arrayContaining(['api_key.created', 'api_key.revoked']),
    );
    expect((await auditLogOf(next)).map(({ event }) => event)).toContain('api_key.created');

    await bash(`${base}${off}`);
    expect(await use(token)).toBe('403');
    await bash(`${base}${back}`);
    expect(await use(token)).toBe('200');
    await bash(`${base}${revokeAll}`);
    expect(await use(token)).toBe('401');
  });

  test('RV-04 rotate a key: one event names both keys, and the old one expires after its grace', async () => {
    const [rotate = '', keep = '', verify = '', look = ''] = await samplesOf('how-to/rotate-a-key.md');
    const old = await makeKey('nightly');
    const begin = rotate
      .replace(/KEY_ID=….*/, `KEY_ID=${old.id}`)
      .replace('"graceSeconds": 300', '"graceSeconds": 0');
    const printed = await bash(`${begin}\n${keep}\n${verify}\n${look}\necho "token=$POSTERN_KEY"`);
    expect(printed).toContain('"keyType": "personal"');
    const context = await bash(
      `curl -s -H 'Authorization: Bearer ${/token=(\S+)/.exec(printed)?.[1]}' ${origin}/api/v2/auth/context`,
    );
    const next = (JSON.parse(context) as { data: { keyId?: string; credential?: { id: string } } }).data;
    const rotation = (await auditLogOf(old.id)).find(({ event }) => event === 'api_key.rotated');
    expect(rotation?.keyIds).toHaveLength(2);
    expect(rotation?.keyIds).toContain(old.id);
    expect(JSON.stringify(next)).not.toContain(old.id);
  });

  test('SE-03 rotate the secrets of one machine: neither the new value nor removing the older one signs anyone out', {
    timeout: 6 * 60_000,
  }, async () => {
    const [rotate, signingKeys, retire] = (await samplesOf('how-to/rotate-secrets.md')).map((sample) =>
      sample
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => line.replace('npm start -- ', '').split(' ')),
    );
    const run = async (commands: string[][] | undefined) => {
      for (const args of commands ?? []) {
        const { code, output } = await runCommand(guides.installation, args);
        expect([args.join(' '), code, output]).toEqual([args.join(' '), 0, expect.any(String)]);
      }
    };
    // An answer that needs the sealed token of the session.
    const isSignedIn = () => bash(`curl -s -b jar -o /dev/null -w '%{http_code}' ${origin}/api/v2/sites`);
    expect(await isSignedIn()).toBe('200');
    const key = await makeKey('of before');
    await run(rotate);
    await guides.stop();
    // What is still sealed under the older value keeps it.
    const early = await runCommand(guides.installation, ['secrets', 'retire', 'ENCRYPTION_KEY']);
    expect([early.code, early.output]).toEqual([1, expect.stringContaining('Nothing was changed')]);
    await run(signingKeys);
    await guides.start();
    expect(await isSignedIn()).toBe('200');
    const told = await bash(
      `curl -s -b jar '${origin}/api/v2/audit/events?event=config.signing_keys.changed'`,
    );
    expect(JSON.parse(told)).toMatchObject({
      data: [{ actor: { kind: 'system' }, details: { kid: expect.stringMatching(/^[\w-]{43}$/) } }],
    });
    const metrics = () => bash(`curl -s http://127.0.0.1:${guides.installation.ports.operations}/metrics`);
    await expect.poll(metrics).toMatch(/job_name="reseal"/);
    await guides.stop();
    await run(retire);
    await guides.start();
    expect(await isSignedIn()).toBe('200');
    expect(
      await bash(
        `curl -s -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer ${key.token}' ${origin}/api/v2/auth/context`,
      ),
    ).toBe('200');
  });
});
