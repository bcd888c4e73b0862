import pg from 'pg';

/**
 * Without a shared key-value store, limits and revocation stamps live in one process, so only one may serve a database
 * (contract 1). That process holds an advisory lock on a dedicated connection as long as it runs.
 */
export class DatabaseInUse extends Error {
  constructor() {
    super(
      'Another Postern process uses this database. Without KV_URL, only one process can use it. ' +
        'Stop that process, or set the same KV_URL on every process.',
    );
    this.name = 'DatabaseInUse';
  }
}

const lockKey = 7_263_003;

/** @throws DatabaseInUse */
export async function lockDatabase(
  url: string,
  onLost: (error: Error) => void,
): Promise<{ release(): Promise<void> }> {
  const client = new pg.Client({ connectionString: url, keepAlive: true, application_name: 'postern lock' });
  let isReleased = false;
  client.on('error', (error) => {
    if (!isReleased) onLost(error);
  });
  await client.connect();
  const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [
    lockKey,
  ]);
  if (rows[0]?.taken !== true) {
    isReleased = true;
    await client.end();
    throw new DatabaseInUse();
  }
  return {
    async release() {
      isReleased = true;
      await client.end();
    },
  };
}
