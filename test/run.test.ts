import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

// What `npm start` starts, with a small program in the server's place.
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-run-'));
  const program = join(folder, 'program.mjs');
  writeFileSync(
    program,
    `process.on('SIGTERM', () => { console.log('stopped in order'); process.exit(0); });
     setInterval(() => undefined, 1_000);
     console.log('program', process.pid);`,
  );
  const runner = resolve(import.meta.dirname, '../scripts/run.mjs');
  const scripts = { start: `node "${runner}" "${program}"` };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'run', version: '1.0.0', scripts }));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

// Without /proc, a killed npm is not noticed before its shell ends.
const signals = process.platform === 'linux' ? (['SIGTERM', 'SIGKILL'] as const) : (['SIGTERM'] as const);

test.skipIf(process.platform === 'win32').each(signals)(
  'npm start that is ended with %s takes the program along, in order',
  async (signal) => {
    const npm = spawn('npm', ['start'], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, npm_config_update_notifier: 'false' },
    });
    let printed = '';
    const started = new Promise<void>((done) => {
      npm.stdout.on('data', (chunk: Buffer) => {
        printed += chunk.toString();
        if (/program \d+\n/.test(printed)) done();
      });
    });
    await Promise.race([started, once(npm, 'exit')]);
    const program = Number(/program (\d+)/.exec(printed)?.[1]);
    npm.kill(signal);
    // The output is at its end when the last process that could write to it is gone.
    await once(npm.stdout, 'close');
    expect(printed).toContain('stopped in order');
    expect(() => process.kill(program, 0)).toThrow('ESRCH');
  },
);
