import fc from 'fast-check';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { hour } from '../../src/core/clock.ts';
import { verifyAuditLog } from '../../src/features/audit/verify.ts';
import { newRepository } from '../git-repository.ts';
import { createDice } from '../faults/ledger.ts';
import { problemOf } from './judge.ts';
import { type FuzzRequest, type OperationAt, operationsOf, requestsOf } from './requests.ts';
import { openWorld, type World } from './world.ts';

/**
 * Requests made from the served document, sent by every kind of caller (contract 2). FUZZ_REQUESTS says how many,
 * FUZZ_SEED repeats a run. Every round has a separate installation, so that what a request broke (an account
 * disabled, a scope withdrawn) does not make the rest of the run a run of refusals.
 */
const total = Number(process.env['FUZZ_REQUESTS'] ?? (process.env['CI'] === 'true' ? 20_000 : 4_500));
const seed = Number(process.env['FUZZ_SEED'] ?? 20260101);
const perRound = 500;
const rounds = Math.ceil(total / perRound);

const source = newRepository();
source.commit({ 'postern.yaml': 'version: 1\nservices: { web: { static: {}, build: {} } }\n' });
afterAll(() => source.remove());
afterEach(() => vi.useRealTimers());

test(`R2 ${rounds * perRound} generated requests never get a 500 or an undocumented answer`, async () => {
  const found = new Map<string, string>();
  const reached = new Set<string>();
  let known: string[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const world = await openWorld(source.url);
    known = operationsOf(world.h.app.document).map(({ operation }) => operation.operationId);
    for (const operation of await play(world, seed + round, found)) reached.add(operation);
    await world.h.close();
    vi.useRealTimers();
  }
  expect([...found].map(([problem, example]) => `${problem}\n    ${example}`)).toEqual([]);
  // A fuzzer whose requests are all refused at the door proves nothing.
  const missed = known.filter((operation) => !reached.has(operation));
  // Some need a lucky pair of ids: ids are random, so a short run misses more of them, and not always the same.
  const few = Math.ceil(known.length * (total < 20_000 ? 0.2 : 0.05));
  expect(missed.length > few ? missed : []).toEqual([]);
});

/** One round. Notes every kind of problem with the first request that met it; answers the operations that succeeded. */
async function play(world: World, roundSeed: number, found: Map<string, string>): Promise<Set<string>> {
  const { h } = world;
  const dice = createDice(roundSeed);
  const reached = new Set<string>();
  const note = (problem: string, example: string) => void (found.has(problem) || found.set(problem, example));
  const requests = fc.sample(requestsOf(h.app.document), { numRuns: perRound, seed: roundSeed });
  for (const request of requests) {
    h.clock.advance(request.after);
    const { answer, sent } = await send(world, request, dice);
    const at = operationAt(world, sent.method, sent.path);
    const problem = judge(world, request, at, sent.path, answer);
    if (problem !== undefined)
      note(
        `${request.operation.operation.operationId} ${problem}`,
        `FUZZ_SEED=${roundSeed} ${JSON.stringify(sent)} ${h.logged.at(-1) ?? ''}`.slice(0, 3_000),
      );
    if (answer.status < 300 && at !== undefined) reached.add(at.operation.operationId);
  }
  for (const problem of await aftermath(world)) note(problem, `FUZZ_SEED=${roundSeed}`);
  return reached;
}

async function send(world: World, request: FuzzRequest, dice: ReturnType<typeof createDice>) {
  const headers: Record<string, string> = { host: 'localhost:3000', ...world.credentials(request.caller) };
  for (const [name, value] of Object.entries(request.headers)) {
    // A stray cookie beside the session's, as a browser sends them: in one header.
    headers[name] =
      name === 'cookie' && headers['cookie'] !== undefined
        ? `${headers['cookie']}; ${world.fill(value, dice)}`
        : world.fill(value, dice);
  }
  if (headers['if-match'] === world.fill('«etag»', dice) || request.headers['if-match'] === '«etag»')
    headers['if-match'] = (await world.h.app.services.policies.read()).etag;
  const url = world.fill(request.url, dice);
  const body = request.body === undefined ? undefined : world.fill(request.body, dice);
  const response = await world.h.app.web.inject({
    // Also methods that no route has.
    method: request.method as 'GET',
    url,
    headers,
    ...(body === undefined ? {} : { payload: body }),
  });
  const answer = { status: response.statusCode, headers: response.headers, text: response.payload };
  return {
    answer,
    sent: {
      method: request.method,
      path: response.raw.req.url ?? url,
      caller: request.caller,
      headers: request.headers,
      body: body?.slice(0, 500),
    },
  };
}

/** The operation a method and path belong to, which a bent path or method may have changed. */
function operationAt({ h }: World, method: string, url: string): OperationAt | undefined {
  const path = url.split('?', 1)[0] ?? '';
  const candidates = operationsOf(h.app.document)
    .filter((at) => at.method === (method === 'HEAD' ? 'get' : method.toLowerCase()))
    .filter((at) =>
      new RegExp(`^${at.path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]*')}$`).test(path),
    );
  // As the router does: words before parameters.
  return candidates.sort((a, b) => a.path.split('{').length - b.path.split('{').length)[0];
}

function judge(
  world: World,
  request: FuzzRequest,
  at: OperationAt | undefined,
  path: string,
  answer: { status: number; headers: Record<string, unknown>; text: string },
): string | undefined {
  const { h } = world;
  if (request.method === 'HEAD') return answer.status >= 500 ? `HEAD answers ${answer.status}` : undefined;
  const route =
    at === undefined
      ? undefined
      : h.app.routes.find(({ operationId }) => operationId === at.operation.operationId);
  // A path with dots in it may lead to the pages beside the API.
  if (at === undefined && answer.status === 200 && isPage(path)) return undefined;
  const problem = problemOf(answer, at, route);
  if (problem !== undefined) return problem;
  for (const value of world.values)
    if (answer.text.includes(value.slice(20))) return 'answers with the value of a key';
  if (answer.status < 400 && at !== undefined && route !== undefined && 'data' in route.success) {
    const { data }: { data: unknown } = JSON.parse(answer.text);
    world.learn(request, data);
  }
  return undefined;
}

function isPage(url: string): boolean {
  return /^\/api\/v2\/(?:docs|openapi\.json)(?:\?|$)/.test(url);
}

/** After a round the rest of the product must cope with what was sent: jobs, the audit log, the log. */
async function aftermath({ h, values }: World): Promise<string[]> {
  const problems: string[] = [];
  await h.settle();
  h.clock.advance(hour);
  for (const job of [
    'change-feed',
    'usage',
    'alarms',
    'denials',
    'key-expiry',
    'owner-sweep',
    'seal',
    'prune',
  ]) {
    await h.app.jobs
      .runNow(job)
      .catch((error: unknown) => void problems.push(`the job ${job} fails: ${String(error)}`));
  }
  const { brokenAt } = await verifyAuditLog(h.app.services.read.chain);
  if (brokenAt !== undefined) problems.push(`the audit log is broken: ${JSON.stringify(brokenAt)}`);
  const log = h.logged.join('\n');
  for (const value of values)
    if (log.includes(value.slice(20))) problems.push('the log holds the value of a key');
  return problems;
}
