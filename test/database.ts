import { getHeapStatistics } from 'node:v8';
import { EventEmitter } from 'node:events';
import { readFile } from 'node:fs/promises';
import { inject } from 'vitest';
import { type Database, DatabaseUnavailable, openDatabase } from '../src/platform/database/database.ts';
import { sql } from '../src/platform/database/sql.ts';
import type { EngineStart } from '../src/platform/database/embedded-engine.ts';
import { answerMessages } from '../src/platform/database/embedded-messages.ts';
import { embeddedDatabase, type Thread } from '../src/platform/database/embedded.ts';
import { schemaOf } from './emptying.ts';
import { openOnPostgres, testServer } from './postgres.ts';

type OnStatement = Parameters<typeof openDatabase>[1];

/** A migrated database without any data: in memory, from the snapshot that global-setup.ts made once, or on `testServer`. */
export async function openTestDatabase(onStatement?: OnStatement): Promise<Database> {
  if (testServer !== undefined) return await openOnPostgres(testServer, onStatement);
  const engine = (await emptiedEngine()) ?? (await startEngine());
  return openDatabase(oneUseOf(engine), onStatement);
}

type Engine = ReturnType<typeof embeddedDatabase> & {
  readonly database: Database;
  /** Whether a statement may have changed the schema. */
  mayDiffer: boolean;
};

/**
 * Engines that no test uses now. Starting one takes a second, emptying one some milliseconds: the tests of a process
 * take turns on theirs. An engine ends with the process.
 */
const idle: Engine[] = [];

async function startEngine(): Promise<Engine> {
  const snapshot = await readFile(inject('databaseSnapshot'));
  const embedded = embeddedDatabase({ snapshot, startThread: sameThread });
  await embedded.start();
  return { ...embedded, database: openDatabase(embedded.pool), mayDiffer: false };
}

/**
 * PGlite sets its timers by Date. Where a test holds Date in another year, they are further away than Node's 2^31 ms, and Node
 * would call them every millisecond instead.
 */
globalThis.setTimeout = new Proxy(setTimeout, {
  apply(target, self, [call, ms, ...rest]: [() => void, number, ...unknown[]]) {
    const isTooFar = ms > 2 ** 31 - 1 && new Error('where from').stack?.includes('pglite') === true;
    return Reflect.apply(target, self, [call, isTooFar ? 2 ** 31 - 1 : ms, ...rest]);
  },
});

/**
 * PGlite in the thread of the tests: messages from thread to thread would double the time of a statement.
 * embedded.test.ts and the suites of whole programs test the thread. Answers come in a turn of their own, as messages do.
 */
function sameThread(start: EngineStart): Thread {
  const told = new EventEmitter();
  const ask = answerMessages(start, (news) => void setImmediate(() => told.emit('message', news)));
  return {
    postMessage: ask,
    on: told.on.bind(told),
    terminate: async () => undefined,
    getHeapStatistics: async () => getHeapStatistics(),
  };
}

/** An engine that a test before this one gave back, with the data of a new one. Without one: undefined. */
async function emptiedEngine(): Promise<Engine | undefined> {
  for (let engine = idle.pop(); engine !== undefined; engine = idle.pop()) {
    const { database } = engine;
    // Comparing costs more than emptying.
    if (!engine.mayDiffer || (await schemaOf(database)) === inject('databaseSchema')) {
      engine.mayDiffer = false;
      await sql.raw(inject('databaseEmptying')).run(database.sql);
      return engine;
    }
    // A test changed its schema.
    await database.close();
  }
  return undefined;
}

const changesSchema = /\b(?:create|alter|drop|grant|revoke|do|call)\b/i;

/** The engine for one test: what is still at work when the test has closed its database finds it closed. */
function oneUseOf(engine: Engine): Engine['pool'] {
  let isClosed = false;
  return {
    async connect() {
      if (isClosed) throw new DatabaseUnavailable('The test has closed its database.');
      const connection = await engine.pool.connect();
      return {
        ...connection,
        run(text, values) {
          engine.mayDiffer ||= changesSchema.test(text);
          return connection.run(text, values);
        },
      };
    },
    async end() {
      isClosed = true;
      idle.push(engine);
    },
  };
}
