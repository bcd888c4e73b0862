import { type Extensions, PGlite } from '@electric-sql/pglite';
import { btree_gin } from '@electric-sql/pglite/contrib/btree_gin';
import { btree_gist } from '@electric-sql/pglite/contrib/btree_gist';
import { citext } from '@electric-sql/pglite/contrib/citext';
import { fuzzystrmatch } from '@electric-sql/pglite/contrib/fuzzystrmatch';
import { hstore } from '@electric-sql/pglite/contrib/hstore';
import { ltree } from '@electric-sql/pglite/contrib/ltree';
import { pg_trgm } from '@electric-sql/pglite/contrib/pg_trgm';
import { pgcrypto } from '@electric-sql/pglite/contrib/pgcrypto';
import { unaccent } from '@electric-sql/pglite/contrib/unaccent';
import { uuid_ossp } from '@electric-sql/pglite/contrib/uuid_ossp';
import { messageOf, startupPacket } from './messages.ts';

/** PGlite as one session of PostgreSQL. Each call waits for the previous answer. */
export type Backend = {
  /** Messages for a client that has signed in. */
  readonly greeting: Buffer;
  /** Answers one message of the protocol. */
  run(message: Uint8Array): Promise<Buffer>;
  close(): Promise<void>;
};

/** Common extensions that PGlite has and that PostgreSQL allows the owner of a database to create. */
const extensions: Extensions = {
  btree_gin,
  btree_gist,
  citext,
  fuzzystrmatch,
  hstore,
  ltree,
  pg_trgm,
  pgcrypto,
  unaccent,
  uuid_ossp,
};

/**
 * Sent after every message that may begin COPY FROM STDIN. PGlite reads the data from the same call and ends without it.
 * PostgreSQL ignores CopyFail outside of a COPY.
 */
const copyFail = messageOf('f', 'PGlite cannot COPY FROM STDIN\0');
/** Query and Execute. */
const mayCopy = 'QE';

/** `folder`: folder of the data. Absent: the data is in memory. */
export async function openBackend(folder?: string): Promise<Backend> {
  const database = await PGlite.create({
    ...(folder === undefined ? {} : { dataDir: folder }),
    extensions,
    // PostgreSQL's default, 128 MB, would be most of the memory of a small database.
    startParams: [...PGlite.defaultStartParams, '-c', 'shared_buffers=32MB'],
  });
  async function run(message: Uint8Array): Promise<Buffer> {
    const chunks: Buffer[] = [];
    const isCopy = mayCopy.includes(String.fromCharCode(message[0] ?? 0));
    const whole = isCopy ? Buffer.concat([message, copyFail]) : message;
    // execProtocolRaw() would keep all answers forever.
    await database.execProtocolRawStream(whole, {
      // Copied, because PGlite reuses this memory.
      onRawData: (bytes) => void chunks.push(Buffer.from(bytes)),
    });
    return Buffer.concat(chunks);
  }
  const greeting = await run(startupPacket({ user: 'postgres', database: 'postgres' }));
  return { greeting, run, close: () => database.close() };
}
