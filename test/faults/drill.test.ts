import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Weaken } from '../../src/operations/drill/drill-app.ts';
import { drill } from '../../src/operations/drill/drill.ts';
import type { Rule } from '../../src/operations/drill/rules.ts';
import type { Kv } from '../../src/platform/kv/kv.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-drill-test-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const failures = (rules: readonly Rule[]) =>
  rules.filter(({ passed }) => !passed).map(({ scenario, rule, got }) => `${scenario}: ${rule}: ${got}`);

/** A full drill is played by the command below; here what concerns the part that is weak. */
const found = async (weaken: Weaken, about: RegExp) =>
  failures(await drill(folder, { weaken, isAsked: (scenario) => about.test(scenario) }));

describe('the drill', () => {
  test('the drill finds a directory that says yes while it is unavailable', async () => {
    const failed = await found(trustingDirectory, /identity service is unavailable$|token/);
    expect(failed).toContain('the identity service is unavailable: a key cannot use Sites: 200');
    for (const scenario of [
      'the identity service is unavailable',
      'the token behind the session was revoked',
    ])
      expect(failed).toContain(`${scenario}: no new grant is issued: 200 with the private page`);
  });

  test('the drill finds a store that answers from a cache', async () => {
    const weaken: Weaken = (parts) => ({ ...parts, kv: recordingKv(parts.kv) });
    const shown = '200 with the private page';
    const failed = await found(weaken, /store is unavailable|lost all data|record of the (?:grant|state)/);
    expect(failed).toEqual(
      expect.arrayContaining([
        `the key-value store is unavailable: a grant gives no access: ${shown}`,
        `the key-value store lost all data: grants are lost: ${shown}`,
        `the record of the grant is damaged: invalid: a grant gives no access: ${shown}`,
        `the record of the state of the site is damaged: missing: a grant gives no access: ${shown}`,
      ]),
    );
  });

  test('the drill finds a database whose absence looks like an empty one: valid keys would be refused', async () => {
    const failed = await found(emptyWhenAway, /database/);
    expect(failed).toContain('the database is unavailable: a valid key is not reported as invalid: 401');
  });
});

describe('the command', () => {
  function start(args: readonly string[], env: Record<string, string> = {}) {
    const child = spawn(process.execPath, ['src/main.ts', 'drill', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], TMPDIR: folder, ...env },
    });
    let printed = '';
    child.stdout.on('data', (chunk: Buffer) => {
      printed += chunk.toString();
    });
    return { child, printed: () => printed };
  }

  test('every rule holds; the command answers scripts with JSON and 0, touches no installation, and leaves nothing', {
    timeout: 10 * 60_000,
  }, async () => {
    // What is set for a server, wrong as it may be, is none of its business.
    const never = join(folder, 'data-of-the-server');
    const { child, printed } = start(['--json'], { DATA_DIR: never, PORT: 'nonsense', KV_URL: 'nonsense' });
    const [code] = await once(child, 'close');
    const { ok, rules } = JSON.parse(printed()) as { ok: boolean; rules: Rule[] };
    expect(failures(rules)).toEqual([]);
    expect([code, ok]).toEqual([0, true]);
    expect(new Set(rules.map(({ scenario }) => scenario)).size).toBeGreaterThan(15);
    expect(rules.length).toBeGreaterThan(90);
    expect([existsSync(never), readdirSync(folder)]).toEqual([false, []]);
  });

  test('after Ctrl-C it leaves nothing behind', async () => {
    const { child, printed } = start([]);
    while (!printed().includes('held')) await once(child.stdout, 'data');
    expect(readdirSync(folder)).toHaveLength(1);
    child.kill('SIGINT');
    const [code] = await once(child, 'close');
    expect([code, readdirSync(folder)]).toEqual([130, []]);
  });

  test('an unknown argument is refused', async () => {
    const { child } = start(['--fast']);
    expect(await once(child, 'close')).toEqual([2, null]);
  });
});

const trustingDirectory: Weaken = (parts) => ({
  ...parts,
  directory(builtin) {
    const real = parts.directory?.(builtin) ?? builtin;
    return {
      async introspect(token, hint) {
        const found = await real.introspect(token, hint);
        return found.kind === 'active' ? found : await builtin.introspect(token, hint);
      },
      async principal(subject) {
        const found = await real.principal(subject);
        return found.kind === 'unavailable' ? await builtin.principal(subject) : found;
      },
    };
  },
});

/** What was read once is good for ever. */
function recordingKv(real: Kv): Kv {
  const known = new Map<string, string>();
  const remember = (key: string, value: string | null) => {
    if (value === null || value.includes('nonsense')) return known.get(key) ?? value;
    const before = known.get(key);
    if (before === undefined || !before.startsWith(value.slice(0, -1))) known.set(key, value);
    return known.get(key) ?? value;
  };
  return {
    ...real,
    async getAll(keys) {
      const found = await Promise.resolve(real.getAll(keys)).catch(() => undefined);
      return {
        values: keys.map((key, at) => remember(key, found?.values[at] ?? null)),
        now: found?.now ?? Date.now(),
      };
    },
  };
}

/** Rows are not there when the server is not. */
const emptyWhenAway: Weaken = (parts) => {
  const { database } = parts;
  const { sql } = database;
  return {
    ...parts,
    database: {
      ...database,
      sql: {
        run: (...statement) => sql.run(...statement).catch(() => ({ rows: [], affected: 0 })),
      },
    },
  };
};
