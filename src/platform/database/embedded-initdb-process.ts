import { openDatabase } from './database.ts';
import { embeddedDatabase } from './embedded.ts';
import type { Outcome } from './embedded-initdb.ts';

/** The process that embedded-initdb.ts starts. Its argument: an empty folder. */
async function initialize(folder: string): Promise<Outcome> {
  try {
    const embedded = embeddedDatabase({ dataDir: folder });
    const database = openDatabase(embedded.dialect);
    await embedded.start();
    await database.close();
    return { failure: null };
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    return { failure: { message, ...(code === undefined ? {} : { code }) } };
  }
}

// The start that needed the database has ended.
process.once('disconnect', () => process.exit(1));

const outcome = await initialize(process.argv[2] ?? '');
// Exits once the message is sent, even if something still keeps this process alive.
process.send?.(outcome, () => process.exit());
