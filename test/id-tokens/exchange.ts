import { openDatabase } from '../../src/platform/database/database.ts';
import { postgresPool } from '../../src/platform/database/postgres.ts';
import { sql } from '../../src/platform/database/sql.ts';
import { exchangeOf, urlEncoded } from '../api/federation/platforms.ts';
import type { Harness, Person } from '../harness.ts';

/** What a pipeline sends to exchange an ID token (RFC 8693 section 2.1). */
export const exchangeForm = (idToken: string, keyId: string) => urlEncoded(exchangeOf(idToken, keyId));

/** The outcome is 200, or the status and the error of OAuth. */
export async function exchange(h: Pick<Harness, 'call'>, idToken: string, keyId: string) {
  const { status, error, text } = await h.call('POST', '/auth/exchange', {
    raw: exchangeForm(idToken, keyId),
  });
  const { access_token: token = '' } = JSON.parse(text) as { access_token?: string };
  return { outcome: status < 400 ? String(status) : `${status} ${error.code}`, token };
}

/** Why the newest exchange for the key was refused, as an administrator reads it. */
export async function refusalReason(h: Harness, administrator: Person, keyId: string): Promise<string> {
  await h.app.services.denials.flush({ all: true });
  const { data } = await h.call('GET', `/tokens/${keyId}/timeline`, { as: administrator });
  return data[0].reason;
}

type ExchangeRows = { readonly used: number; readonly tokens: number; readonly events: number };

/**
 * What the exchanges of one run left. Its ID tokens have the claim `run_id`, and begin with it in `jti`. The three numbers are
 * equal unless an exchange was done in part.
 */
export const exchangeRows = (run: string) => sql<ExchangeRows>`
  select (select count(*)::int from used_id_tokens where jti like ${`${run}-%`}) as used,
         (select count(*)::int from exchanged_tokens where run = ${run}) as tokens,
         (select count(*)::int from audit_events where event = 'api_key.exchanged' and details ->> 'run' = ${run})
           as events`;

export async function exchangeRowsAt(databaseUrl: string, run: string): Promise<ExchangeRows | undefined> {
  const database = openDatabase(postgresPool(databaseUrl, { max: 1 }));
  try {
    return await exchangeRows(run).first(database.sql);
  } finally {
    await database.close();
  }
}
