import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { listenersOf } from './config/listeners.ts';
import { workloads } from './config/names.ts';
import type { Config } from './config/read.ts';
import { keepTickShapes } from './platform/tick-shapes.ts';

/** The entry point: enables the compile cache, runs the command line, and explains errors. */

// Compiled code is cached next to the packages, in a folder that is trusted like the code itself. The cache must be
// enabled before most of the program is loaded, so everything below is imported where it is needed. If the folder cannot
// be written, Node runs without the cache.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/postern'));

keepTickShapes();

const args = process.argv.slice(2);
let config: Config | undefined;

async function main(): Promise<number> {
  const { runCommandLine } = await import('./run/command-line.ts');
  return await runCommandLine(args, (read) => {
    config = read;
  });
}

/** Reports an operator's mistake as a message, and any other error with its stack. */
async function explain(error: unknown): Promise<void> {
  const { ConfigError } = await import('./config/config-error.ts');
  const { explainStart, isInUse } = await import('./composition/backends/start-errors.ts');
  const isServer = args.length === 0 || workloads.some((one) => one === args[0]);
  const mistake = explainStart(error, config === undefined ? null : listenersOf(config));
  if (error instanceof ConfigError) {
    const count = error.mistakes.length;
    console.error(
      `postern: ${count} ${count === 1 ? 'setting needs' : 'settings need'} fixing:\n${error.message}`,
    );
  } else if (mistake !== undefined) {
    console.error(
      `postern: ${isServer ? 'the server cannot start' : 'the command failed'}:\n${new ConfigError([mistake]).message}`,
    );
  } else if (isInUse(error)) {
    console.error(`postern: ${error.message}`);
    if (!isServer) console.error('Only one process can open the embedded database: stop the server first.');
  } else {
    console.error('postern:', error);
  }
}

main().then(
  (code) => process.exit(code),
  async (error: unknown) => {
    // What explains the error may itself fail to load.
    await explain(error).catch(() => console.error('postern:', error));
    process.exit(1);
  },
);
