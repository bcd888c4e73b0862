import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

const watchdog = JSON.stringify(new URL('./watchdog.ts', import.meta.url).href);

function run(limitMs: number, work: string) {
  const text = `import { startWatchdog } from ${watchdog};\nconst tell = startWatchdog(${limitMs});\n${work}`;
  return spawnSync(process.execPath, ['--input-type=module', '--eval', text], { encoding: 'utf8' });
}

test('work that never ends is ended, and the log says so', () => {
  expect(run(300, 'tell(true); for (;;) {}')).toMatchObject({
    signal: 'SIGKILL',
    stderr: 'A statement took more than 0.3 s, so the database ended.\n',
  });
});

test('work that ends in time is not, however much of it there is', () => {
  const work = `const until = Date.now() + 4_000;
    while (Date.now() < until) { tell(true); for (const end = Date.now() + 20; Date.now() < end; ); tell(false); }`;
  // The limit is a hundred times what each piece takes.
  expect(run(3_000, work)).toMatchObject({ status: 0, stderr: '' });
});
