// The other side of P2: better-auth's own verification of an API key, in process, on in-memory SQLite.
// Plain JavaScript in a separate package, so that the project's types and lint never need this package.
//   node verify.mjs SECONDS      prints {"perSecond": …}
import { DatabaseSync } from 'node:sqlite';
import { apiKey } from '@better-auth/api-key';
import { betterAuth } from 'better-auth';
import { getMigrations } from 'better-auth/db/migration';

const seconds = Number(process.argv[2] ?? 5);
const options = {
  baseURL: 'http://127.0.0.1',
  secret: 'only for this comparison; protects nothing',
  database: new DatabaseSync(':memory:'),
  emailAndPassword: { enabled: true },
  telemetry: { enabled: false },
  // A limit is counted, as ours is, but never reached.
  plugins: [apiKey({ rateLimit: { enabled: true, timeWindow: 60_000, maxRequests: 1_000_000_000 } })],
};
const { runMigrations } = await getMigrations(options);
await runMigrations();
const auth = betterAuth(options);
const { user } = await auth.api.signUpEmail({
  body: { email: 'ada@example.com', name: 'Ada', password: 'correct horse battery' },
});
const { key } = await auth.api.createApiKey({ body: { userId: user.id, name: 'bench' } });

async function verifyFor(ms) {
  const startedAt = performance.now();
  let calls = 0;
  while (performance.now() - startedAt < ms) {
    for (let index = 0; index < 20; index++) {
      const { valid, error } = await auth.api.verifyApiKey({ body: { key } });
      if (!valid) throw new Error(`A good key was refused: ${JSON.stringify(error)}`);
    }
    calls += 20;
  }
  return (calls * 1_000) / (performance.now() - startedAt);
}

await verifyFor(seconds * 250);
console.log(JSON.stringify({ perSecond: await verifyFor(seconds * 1_000) }));
process.exit(0);
