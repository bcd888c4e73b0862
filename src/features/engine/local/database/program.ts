import { readFile } from 'node:fs/promises';
import { createEmbeddedFolder } from '../../../../platform/database/embedded-folder.ts';
import { openBackend } from './backend.ts';
import { createBridge } from './bridge.ts';
import { answerIn, queryMessage } from './messages.ts';
import { seedRefused } from './program-in.ts';
import { startWatchdog } from './watchdog.ts';

// The database of an Environment. It runs in a separate sandbox, because SQL of a repository can crash it or run forever.
//   make FOLDER [SEED]   creates and fills the folder. For a refused seed, it exits with seedRefused and prints the reason as JSON.
//   serve FOLDER         serves clients on PORT with the password in DATABASE_PASSWORD.
const maxWords = 1_000;
/** Maximum duration of a statement. */
const statementMs = 300_000;
const [verb, folder = '', seed] = process.argv.slice(2);
await (verb === 'make' ? make() : serve());

async function make(): Promise<void> {
  await createEmbeddedFolder(folder);
  const backend = await openBackend(folder);
  if (seed !== undefined) {
    const text = await readFile(seed, 'utf8');
    // Without this COMMIT, a seed with BEGIN but no COMMIT would leave nothing.
    const { status, error } = answerIn(await backend.run(queryMessage(`${text}\n;commit`)));
    if (error !== undefined || status !== 'I') {
      const message = (error?.get('M') ?? 'PGlite did not survive it').slice(0, maxWords);
      const words = JSON.stringify({ message, position: error?.get('P') });
      // PGlite keeps the process open for seconds, or forever after a seed that crashed it.
      process.stdout.write(words, () => process.exit(seedRefused));
      return;
    }
  }
  await backend.close();
}

async function serve(): Promise<void> {
  const backend = await openBackend(folder);
  const tellBusy = startWatchdog(statementMs);
  const server = createBridge({
    backend: {
      ...backend,
      async run(message) {
        tellBusy(true);
        try {
          return await backend.run(message);
        } finally {
          tellBusy(false);
        }
      },
    },
    password: process.env['DATABASE_PASSWORD'] ?? '',
    onFailure(error) {
      console.error(error);
      process.exit(1);
    },
  });
  // Only on loopback, which the other services share: no other process may connect.
  server.listen(Number(process.env['PORT']), '127.0.0.1', () => console.log('The database is ready.'));
  process.once('SIGTERM', () => void backend.close().then(() => process.exit(0)));
}
