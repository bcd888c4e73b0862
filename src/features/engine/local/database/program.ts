import { readFile } from 'node:fs/promises';
import { createEmbeddedFolder } from '../../../../platform/database/embedded-folder.ts';
import { openBackend } from './backend.ts';
import { createBridge } from './bridge.ts';
import { answerIn, queryMessage } from './messages.ts';
import { seedRefused } from './program-in.ts';
import { startWatchdog } from './watchdog.ts';

// The database of an Environment, which runs in a sandbox of its own: SQL of a repository can end it, or never end.
//   make FOLDER [SEED]   makes the folder and fills it. The status of a refused seed is seedRefused, with why as JSON.
//   serve FOLDER         lets clients in on the port of PORT with the password in DATABASE_PASSWORD.
const maxWords = 1_000;
/** A statement may take this long. */
const statementMs = 300_000;
const [verb, folder = '', seed] = process.argv.slice(2);
await (verb === 'make' ? make() : serve());

async function make(): Promise<void> {
  await createEmbeddedFolder(folder);
  const backend = await openBackend(folder);
  if (seed !== undefined) {
    const text = await readFile(seed, 'utf8');
    // COMMIT: otherwise a seed with a BEGIN of its own, and no COMMIT, would leave nothing.
    const { status, error } = answerIn(await backend.run(queryMessage(`${text}\n;commit`)));
    if (error !== undefined || status !== 'I') {
      const message = (error?.get('M') ?? 'PGlite did not survive it').slice(0, maxWords);
      const words = JSON.stringify({ message, position: error?.get('P') });
      // PGlite keeps the process open for seconds, or for ever after a seed that ended it.
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
  // Not on all addresses: siblings are on the same loopback, and nobody else may connect.
  server.listen(Number(process.env['PORT']), '127.0.0.1', () => console.log('The database is ready.'));
  process.once('SIGTERM', () => void backend.close().then(() => process.exit(0)));
}
