import { encryptAgain, type Encryption } from './encryption.ts';

/**
 * After a new first ENCRYPTION_KEY, encrypts everything again that is encrypted under an older key, so that the older key
 * can be removed without ending a session or a grant (SE-03). A row that no key of the list decrypts stays as it is:
 * another process may already have its key.
 */
export type Reencryption = {
  /** Resolves with how many rows were encrypted again, and how many no key decrypts. */
  run(): Promise<{ reencrypted: number; unreadable: number }>;
  /** How many rows are not encrypted under the first key. Changes nothing. */
  waiting(): Promise<number>;
};

/** The encrypted rows of one table that do not begin with `mark`, in the order of their ids, after `after`. */
export type EncryptedRows = (mark: string, after: string, limit: number) => Promise<EncryptedRow[]>;

type EncryptedRow = {
  readonly id: string;
  readonly encrypted: string;
  readonly context: string;
  /** Changes nothing when the row has changed meanwhile. */
  replace(encrypted: string): Promise<void>;
};

const batch = 200;
const longest = 1_000_000;

export function createReencryption({
  tables,
  encryption,
}: {
  tables: readonly EncryptedRows[];
  encryption: Encryption;
}): Reencryption {
  const { keyMark } = encryption;
  return {
    async run() {
      const count = { reencrypted: 0, unreadable: 0 };
      for (const table of tables) {
        for (let after = '', isLast = false; !isLast; ) {
          const rows = await table(keyMark, after, batch);
          for (const { id, encrypted, context, replace } of rows) {
            const fresh = encryptAgain(encryption, encrypted, context);
            if (fresh === undefined) count.unreadable += 1;
            else {
              await replace(fresh);
              count.reencrypted += 1;
            }
            after = id;
          }
          isLast = rows.length < batch;
        }
      }
      return count;
    },
    async waiting() {
      const waiting = await Promise.all(tables.map((table) => table(keyMark, '', longest)));
      return waiting.flat().length;
    },
  };
}
