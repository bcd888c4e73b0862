import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemRandom, randomBase62 } from '../src/core/ids.ts';
import { type BenchOptions, type Figure, perSecond, sideBySide } from './figures.ts';
import { load } from './load.ts';
import { type BenchServer, startServer } from './server-process.ts';

/**
 * P3: keys that were never issued (random values, so their checksum is wrong), against the same response without a key.
 * Most get 429, because the address is throttled after 120; 401 and 429 both count as refusals. Then, with the periodic
 * jobs stopped, the bench counts the database and key-value calls of a flood: there must be none.
 */
export async function garbage(options: BenchOptions): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-garbage-'));
  const server = await startServer();
  try {
    const script = join(folder, 'garbage.lua');
    writeFileSync(script, scriptOf(1_000));
    return await measure(server, script, options);
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(server: BenchServer, script: string, { quick }: BenchOptions): Promise<Figure[]> {
  const seconds = quick ? 1 : 2;
  const refuse = async (forSeconds: number) => {
    const found = await load(`${server.address}/api/v2/auth/context`, {
      seconds: forSeconds,
      script,
      server: server.pid,
    });
    if (found.refused !== found.requests || found.broken > 0)
      throw new Error(
        `${found.requests - found.refused} keys that do not exist were let in, ${found.broken} broke.`,
      );
    return found;
  };
  const speed = await sideBySide(
    quick ? 1 : 15,
    async () => (await refuse(seconds)).perProcessorSecond,
    // The same requests to a route that needs no key, so that the load generator has the same cost.
    async () =>
      (await load(`${server.address}/api/v2/bench/plain`, { seconds, script, server: server.pid }))
        .perProcessorSecond,
  );
  await server.restJobs();
  await server.calls();
  const { requests } = await refuse(1);
  const calls = await server.calls();
  const total = calls.database + calls.kv;
  return [
    {
      id: 'P3',
      what: 'keys that do not exist, refused',
      ours: `${perSecond(speed.ours)} of processor time`,
      reference: perSecond(speed.reference),
      ratio: speed.ratio,
      floor: '≥ 0.95',
      goal: '≥ 0.95',
      passes: speed.ratio >= 0.95,
    },
    {
      id: 'P3',
      what: `database and key-value calls of ${requests.toLocaleString('en')} refusals`,
      ours: String(total),
      reference: '0',
      ratio: total,
      floor: '0',
      goal: '0',
      passes: total === 0,
    },
  ];
}

/** Requests generated once and sent in turn: the load generator must not spend its time on generating them. */
function scriptOf(count: number): string {
  const values = Array.from({ length: count }, () => `app_pat_${randomBase62(systemRandom, 50)}`);
  return `
local values = { ${values.map((value) => `"${value}"`).join(', ')} }
local requests, at = {}, 0
function init()
  for i, value in ipairs(values) do
    requests[i] = wrk.format("GET", nil, { ["authorization"] = "Bearer " .. value, ["host"] = "localhost" })
  end
end
function request()
  at = at % #requests + 1
  return requests[at]
end
`;
}
