import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { postgresAnswers, preparePostgres } from './local-servers.ts';

// Runs a program with a temporary PostgreSQL, in a temporary folder and on a free loopback port:
//   node scripts/with-postgres.ts node_modules/vitest/vitest.mjs run
const { folder, url, program: postgres, args, account } = await preparePostgres();
const settings = ['log_min_messages=error', 'fsync=off', 'max_connections=200'];
const server = spawn(postgres, [...args, ...settings.flatMap((setting) => ['-c', setting])], {
  ...account,
  stdio: ['ignore', 'ignore', 'inherit'],
});
process.once('SIGTERM', () => server.kill('SIGINT'));
process.once('SIGINT', () => server.kill('SIGINT'));

let code = 1;
try {
  await answering();
  console.log(`PostgreSQL: ${execFileSync(postgres, ['--version'], { encoding: 'utf8' }).trim()}`);
  const program = spawn(process.execPath, process.argv.slice(2), {
    stdio: 'inherit',
    env: { ...process.env, TEST_DATABASE_URL: url },
  });
  const [exit]: unknown[] = await once(program, 'exit');
  if (typeof exit === 'number') code = exit;
} finally {
  // SIGINT is PostgreSQL's fast shutdown.
  if (isRunning(server)) {
    server.kill('SIGINT');
    await once(server, 'exit');
  }
  rmSync(folder, { recursive: true, force: true });
}
process.exit(code);

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

async function answering(): Promise<void> {
  for (let attempt = 0; attempt < 150; attempt++) {
    if (!isRunning(server)) throw new Error('PostgreSQL ended before it answered; its message is above.');
    if (await postgresAnswers(url)) return;
    await wait(200);
  }
  throw new Error('PostgreSQL did not answer within 30 seconds.');
}
