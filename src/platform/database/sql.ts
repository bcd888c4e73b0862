/** What runs a statement: the database outside a transaction, or one transaction. */
export type Sql = {
  /** The Nth of `values` is bound to `$N`. */
  run(text: string, values: readonly unknown[]): Promise<Result>;
};

export type Result = {
  readonly rows: unknown[];
  /** The number of rows that the statement inserted, changed or deleted. */
  readonly affected: number;
};

/** A statement, or a part of one. */
export class Statement<Row = unknown> {
  readonly #texts: readonly string[];
  readonly #values: readonly unknown[];

  /** @param values each stands between two texts */
  constructor(texts: readonly string[], values: readonly unknown[]) {
    this.#texts = texts;
    this.#values = values;
  }

  /** All rows. */
  async all(db: Sql): Promise<Row[]> {
    const { rows } = await this.#result(db);
    // The caller states what its columns are.
    return rows as Row[];
  }

  /** The first row; undefined when there is none. */
  async first(db: Sql): Promise<Row | undefined> {
    return (await this.all(db))[0];
  }

  /** The number of rows that it inserted, changed or deleted. */
  async run(db: Sql): Promise<number> {
    return (await this.#result(db)).affected;
  }

  async #result(db: Sql): Promise<Result> {
    const bound: unknown[] = [];
    return await db.run(this.#written(bound), bound);
  }

  /** The text. Appends its values to `bound`. */
  #written(bound: unknown[]): string {
    return this.#texts.reduce((before, text, at) => {
      const value = this.#values[at - 1];
      return before + (value instanceof Statement ? value.#written(bound) : `$${bound.push(value)}`) + text;
    });
  }
}

/** A value in the template is bound. A statement becomes a part of this one. */
export function sql<Row = unknown>(texts: readonly string[], ...values: readonly unknown[]): Statement<Row> {
  return new Statement(texts, values);
}

/** Joins values or statements. */
sql.join = (parts: readonly unknown[], separator = ', '): Statement =>
  new Statement(['', ...parts.map((_, at) => (at === parts.length - 1 ? '' : separator))], parts);

/** This text, without any value of a caller. */
sql.raw = <Row = unknown>(text: string): Statement<Row> => new Statement<Row>([text], []);

/** The quoted name of a table, column or role. */
sql.id = (name: string): Statement => sql.raw(`"${name.replaceAll('"', '""')}"`);
