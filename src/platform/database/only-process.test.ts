import { expect, test } from 'vitest';
import { DatabaseInUse, lockDatabase } from './only-process.ts';

// The suites run on PostgreSQL too (npm run test:postgres); the embedded database has its own lock.
const url = process.env['TEST_DATABASE_URL'];

test.skipIf(url === undefined)(
  'a second process on one PostgreSQL without a shared store is refused',
  async () => {
    const lost = () => undefined;
    const first = await lockDatabase(url ?? '', lost);
    await expect(lockDatabase(url ?? '', lost)).rejects.toThrow(DatabaseInUse);
    await first.release();
    const second = await lockDatabase(url ?? '', lost);
    await second.release();
  },
);
