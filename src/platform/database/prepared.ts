import { type PGlite, messages, protocol } from '@electric-sql/pglite';
import { rowsOf, timestamptz } from './rows.ts';

/**
 * Prepared statements for the embedded database. Each is parsed once, and planned each time for its values: one message
 * instead of six. PGlite itself parses every statement again: reading a row takes 0.21 ms there and 0.1 here, and a redeploy
 * (P8, 60 ms) has 43 statements.
 */
export type PreparedStatements = {
  /** @throws the database's error, with `code` (SQLSTATE) and `constraint`, never with a value of the statement */
  run(text: string, values: readonly unknown[]): Promise<{ rows: unknown[]; affected: number }>;
  /** Runs several statements that return no rows, such as a migration. */
  runScript(text: string): Promise<void>;
  isInTransaction(): boolean;
};

type Prepared = {
  readonly name: string;
  /** PostgreSQL's type numbers of the parameters and of the result columns. */
  readonly parameterTypes: readonly number[];
  readonly fields: readonly messages.Field[];
};

type Answer = Awaited<ReturnType<PGlite['execProtocol']>>['messages'];

/** More than the number of statements in the program. The limit keeps texts that never repeat from filling the memory. */
const most = 500;

const { serialize } = protocol;

/**
 * First words of statements that may be kept prepared. Any other statement may change the columns that prepared
 * statements return.
 */
const keepable = /^\s*(?:select|insert|update|delete|with|begin|commit|rollback|vacuum)\b/i;

export async function prepareStatements(database: PGlite): Promise<PreparedStatements> {
  // node-postgres behaves the same way in production. A plan for any value does not suit a search (`like $1`), and nothing
  // would replace it when tables grow, because there is no autovacuum: a search among 100,000 sites took 160 ms instead of 5.
  await database.exec('set plan_cache_mode = force_custom_plan');
  const kept = new Map<string, Prepared>();
  let named = 0;
  // A failed transaction accepts nothing but its end, so prepared statements are not deallocated inside one.
  let inTransaction = false;

  async function ask(...parts: Uint8Array[]): Promise<Answer> {
    const answer = await database.execProtocol(Buffer.concat(parts), {
      syncToFs: false,
      throwOnError: false,
    });
    const failure = answer.messages.find((one) => one instanceof messages.DatabaseError);
    if (failure !== undefined) throw failure;
    return answer.messages;
  }

  async function forgetAll(): Promise<void> {
    kept.clear();
    await database.exec('deallocate all');
  }

  async function prepare(text: string): Promise<Prepared> {
    const earlier = kept.get(text);
    if (earlier !== undefined) return earlier;
    const name = `s${(named += 1)}`;
    const answer = await ask(
      serialize.parse({ name, text }),
      serialize.describe({ type: 'S', name }),
      serialize.sync(),
    );
    const parameters = answer.find((one) => one instanceof messages.ParameterDescriptionMessage);
    const columns = answer.find((one) => one instanceof messages.RowDescriptionMessage);
    const prepared = {
      name,
      parameterTypes: parameters?.dataTypeIDs ?? [],
      fields: columns?.fields ?? [],
    };
    kept.set(text, prepared);
    return prepared;
  }

  function written(value: unknown, type: number | undefined): string | null {
    if (value === null || value === undefined) return null;
    // PGlite would read it as milliseconds. A server refuses it, because it gets the digits.
    if (type === timestamptz && typeof value === 'number') throw new TypeError('A time is bound as a Date.');
    const write = type === undefined ? undefined : database.serializers[type];
    if (write !== undefined) return write(value);
    // PGlite has no parser for these types; they take text.
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint')
      return `${value}`;
    throw new TypeError(`There is no way to write a value of PostgreSQL's type ${type}.`);
  }

  function rowsIn({ fields }: Prepared, answer: Answer): unknown[] {
    const read = fields.map(({ dataTypeID }) => database.parsers[dataTypeID]);
    const values = answer
      .filter((one) => one instanceof messages.DataRowMessage)
      .map((row) =>
        row.fields.map((value, at) => {
          const parse = read[at];
          return value === null || parse === undefined ? value : parse(value);
        }),
      );
    return rowsOf(
      fields.map(({ name }) => name),
      values,
    );
  }

  return {
    async run(text, values) {
      if (!keepable.test(text)) {
        const {
          rows,
          fields,
          affectedRows = 0,
        } = await database.query<unknown[]>(text, [...values], {
          rowMode: 'array',
        });
        await forgetAll();
        const columns = fields.map(({ name }) => name);
        return { rows: rowsOf(columns, rows), affected: affectedRows };
      }
      if (kept.size >= most && !kept.has(text) && !inTransaction) await forgetAll();
      const prepared = await prepare(text);
      const answer = await ask(
        serialize.bind({
          statement: prepared.name,
          values: values.map((value, at) => written(value, prepared.parameterTypes[at])),
        }),
        serialize.execute({}),
        serialize.sync(),
      );
      const word = firstWordOf(text);
      if (word === 'begin') inTransaction = true;
      if (word === 'commit' || word === 'rollback') inTransaction = false;
      return { rows: rowsIn(prepared, answer), affected: affectedBy(answer) };
    },
    async runScript(text) {
      await database.exec(text);
      await forgetAll();
    },
    isInTransaction: () => inTransaction,
  };
}

/** In lower case. */
export function firstWordOf(text: string): string | undefined {
  return /^\s*(\w+)/.exec(text)?.[1]?.toLowerCase();
}

/** The number of changed rows, from the command tag: `INSERT 0 2`, `UPDATE 1`. */
function affectedBy(answer: Answer): number {
  const done = answer.find((one) => one instanceof messages.CommandCompleteMessage);
  const [, count] = /^(?:INSERT \d+|UPDATE|DELETE) (\d+)$/.exec(done?.text ?? '') ?? [];
  return Number(count ?? 0);
}
