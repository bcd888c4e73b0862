import { contextOf } from './provider/adapter.ts';
import { encryptAgain, type Encryption } from '../../platform/encryption.ts';
import { sessionContext } from './sessions/access-token.ts';
import type { IdentityStores } from './stores.ts';

/**
 * After a new first ENCRYPTION_KEY, encrypts everything again that is encrypted under an older key, so that the older key
 * can be removed without ending a session or a grant (SE-03). A record that no key of the list decrypts stays as it is:
 * another process may already have its key.
 */
export type Reencryption = {
  /** Resolves with how many records were encrypted again, and how many no key decrypts. */
  run(): Promise<{ reencrypted: number; unreadable: number }>;
  /** How many records are not encrypted under the first key. Changes nothing. */
  waiting(): Promise<number>;
};

const batch = 200;
const longest = 1_000_000;

type Read = {
  readonly sessions: Pick<IdentityStores['sessions'], 'underOtherKeys' | 'replaceEncrypted'>;
  readonly records: Pick<IdentityStores['records'], 'underOtherKeys' | 'replaceEncrypted'>;
};

export function createReencryption({
  read,
  encryption,
}: {
  read: Read;
  encryption: Encryption;
}): Reencryption {
  const { sessions, records } = read;

  async function reencrypt<Row extends object>(
    next: (after: string) => Promise<Row[]>,
    idOf: (row: Row) => string,
    one: (row: Row) => Promise<boolean>,
  ): Promise<{ reencrypted: number; unreadable: number }> {
    const count = { reencrypted: 0, unreadable: 0 };
    for (let after = ''; ; ) {
      const rows = await next(after);
      for (const row of rows) {
        if (await one(row)) count.reencrypted += 1;
        else count.unreadable += 1;
        after = idOf(row);
      }
      if (rows.length < batch) return count;
    }
  }

  return {
    async run() {
      const ofSessions = await reencrypt(
        (after) => sessions.underOtherKeys(encryption.keyMark, after, batch),
        ({ id }) => id,
        async ({ id, encrypted }) => {
          const fresh = encryptAgain(encryption, encrypted, sessionContext(id));
          if (fresh !== undefined) await sessions.replaceEncrypted(id, encrypted, fresh);
          return fresh !== undefined;
        },
      );
      const ofRecords = await reencrypt(
        (after) => records.underOtherKeys(encryption.keyMark, after, batch),
        ({ idHash }) => idHash,
        async (record) => {
          const fresh = encryptAgain(encryption, record.payload, contextOf(record.model, record.idHash));
          if (fresh !== undefined) await records.replaceEncrypted(record, fresh);
          return fresh !== undefined;
        },
      );
      return {
        reencrypted: ofSessions.reencrypted + ofRecords.reencrypted,
        unreadable: ofSessions.unreadable + ofRecords.unreadable,
      };
    },
    async waiting() {
      const [some, more] = await Promise.all([
        sessions.underOtherKeys(encryption.keyMark, '', longest),
        records.underOtherKeys(encryption.keyMark, '', longest),
      ]);
      return some.length + more.length;
    },
  };
}
