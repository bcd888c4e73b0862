import { setTimeout as wait } from 'node:timers/promises';
import { githubUrl } from '../api/federation/platforms.ts';
import { newFederatedKey } from '../cli/federated-key.ts';
import { type Browser, NoAnswer } from '../faults/browser.ts';
import { createDice, type Cut, underWay } from '../faults/ledger.ts';
import { type Installation, runCommand, startProgram } from '../faults/program.ts';
import { withDatabase } from '../faults/site-leftovers.ts';
import { exchangeForm, exchangeRows, exchangeRowsAt } from '../id-tokens/exchange.ts';
import { openPlatform, type Platform } from '../id-tokens/platforms.ts';
import { cycles, seed, setUp, tellOfKills } from './kills.ts';

/** Each key may exchange 60 times a minute, which no life reaches. */
const hands = 6;

/**
 * Lives in which ID tokens are exchanged, each ended by SIGKILL. Then every token that was acknowledged works, and every used
 * ID token has its exchanged token and its audit event, also without an answer.
 */
export async function exchangeThroughKills(installation: Installation) {
  const dice = createDice(seed);
  const browser = await setUp(installation);
  const github = openPlatform('github', githubUrl);
  const keys: string[] = [];
  const first = await startProgram(installation);
  while (keys.length < hands) keys.push(await newFederatedKey(browser, [github]));
  await first.end('SIGTERM');
  browser.disconnect();

  const cut: Cut = new Map();
  const problems: string[] = [];
  let acknowledged = 0;
  let tokens: string[] = [];
  /** The next life knows what the one before it acknowledged. */
  async function nextLife() {
    const program = await startProgram(installation);
    for (const token of tokens) {
      const { status } = await browser.asKey(token, 'GET', '/auth/context');
      if (status !== 200) problems.push(`a token was acknowledged, and a request with it answers ${status}`);
    }
    tokens = [];
    return program;
  }
  for (let cycle = 1; cycle <= cycles && problems.length === 0; cycle += 1) {
    const run = String(cycle);
    const program = await nextLife();
    let isOver = false;
    const working = Promise.all(
      keys.map((keyId) => exchangeUntilGone({ browser, github, keyId, run, tokens, cut })),
    ).finally(() => {
      isOver = true;
    });
    const enough = dice.below(40);
    while (tokens.length < enough && !isOver) await Promise.race([wait(2), working]);
    await wait(dice.below(30));
    await program.end('SIGKILL');
    await working;
    browser.disconnect();
    acknowledged += tokens.length;

    const { used = 0, tokens: stored, events } = (await rowsOf(installation, run)) ?? {};
    if (stored !== used || events !== used || used < tokens.length)
      problems.push(`${tokens.length} acknowledged: ${used} ID tokens, ${stored} tokens, ${events} events`);
  }
  const last = await nextLife();
  await last.end('SIGTERM');
  browser.disconnect();
  const auditLog = await runCommand(installation, ['audit', 'verify']);
  if (auditLog.code !== 0) problems.push(auditLog.output);
  if (problems.length > 0) problems.unshift(`FAULT_SEED=${seed}`);
  tellOfKills(acknowledged, cut, problems);
  return { acknowledged, problems };
}

type Hand = {
  readonly browser: Browser;
  readonly github: Platform;
  readonly keyId: string;
  readonly run: string;
  readonly tokens: string[];
  readonly cut: Cut;
};

async function exchangeUntilGone({ browser, github, keyId, run, tokens, cut }: Hand): Promise<void> {
  try {
    for (let count = 1; ; count += 1) {
      const claims = github.claims(Date.now(), browser.origin);
      const idToken = await github.sign({ ...claims, run_id: run, jti: `${run}-${keyId}-${count}` });
      const asking = browser.post('/auth/exchange', exchangeForm(idToken, keyId));
      const { status, text } = await underWay(cut, 'exchange', asking);
      if (status !== 200) throw new Error(`Answered ${status}: ${text}`);
      tokens.push((JSON.parse(text) as { access_token: string }).access_token);
    }
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
  }
}

async function rowsOf({ dataDir, databaseUrl }: Installation, run: string) {
  if (databaseUrl !== undefined) return await exchangeRowsAt(databaseUrl, run);
  return await withDatabase(dataDir, (database) => exchangeRows(run).first(database.sql));
}
