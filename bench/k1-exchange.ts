import { Agent, type IncomingMessage, request } from 'node:http';
import { once } from 'node:events';
import { json } from 'node:stream/consumers';
import { openPlatform } from '../test/id-tokens/platforms.ts';
import { type BenchOptions, type Figure, median, perSecond, sideBySide } from './figures.ts';
import { load, processorSeconds } from './load.ts';
import { type BenchServer, startServer } from './server-process.ts';

/** Exchanges of one key that the limit allows in a minute. */
const uses = 60;
const atOnce = 64;
const minExchanges = 500;
const minRatio = 0.95;

/**
 * K1: exchanges of ID tokens in the form of GitHub Actions, each used once, for every second of processor time of the server.
 * K2: the request of P1 with exchanged tokens, against the same with the values of keys.
 */
export async function exchange(options: BenchOptions): Promise<Figure[]> {
  const server = await startServer();
  try {
    return await measure(server, options);
  } finally {
    await server.stop();
  }
}

async function measure(server: BenchServer, { quick }: BenchOptions): Promise<Figure[]> {
  const github = openPlatform('github', 'https://token.actions.githubusercontent.com');
  const { audience, keyIds } = await server.trust({ ...github.issuer, jwks: { keys: [github.publicKey] } });
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
  const rates: number[] = [];
  const tokens: string[] = [];
  // The first round fills caches, and does not count.
  for (let round = 0; round < (quick ? 2 : 10); round += 1) {
    const each = quick ? 1 : uses / 10;
    const forms = await Promise.all(
      Array.from({ length: keyIds.length * each }, async (_, index) =>
        new URLSearchParams({
          grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
          subject_token: await github.sign(github.claims(Date.now(), audience)),
          subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
          audience: keyIds[index % keyIds.length] ?? '',
        }).toString(),
      ),
    );
    const before = processorSeconds(server.pid);
    const waiting = forms.values();
    const one = async () => {
      for (const form of waiting) tokens.push(await exchanged(agent, server, form));
    };
    await Promise.all(Array.from({ length: atOnce }, one));
    if (round > 0) rates.push(forms.length / (processorSeconds(server.pid) - before));
  }
  agent.destroy();
  console.error(`bench: exchanges a second ${rates.map((rate) => rate.toFixed(0)).join(' ')}`);

  const latest = tokens.slice(-12);
  const requests = (values: readonly string[]) => async (round: number) => {
    const found = await load(`${server.address}/api/v2/auth/context`, {
      seconds: quick ? 1 : 2,
      headers: { authorization: `Bearer ${values[round % values.length]}` },
      server: server.pid,
    });
    if (found.refused > 0 || found.broken > 0)
      throw new Error(`${found.refused} requests were refused, ${found.broken} broke.`);
    return found.perProcessorSecond;
  };
  const used = await sideBySide(quick ? 1 : 15, requests(latest), requests(server.keys));
  const rate = median(rates);
  return [
    {
      id: 'K1',
      what: 'ID tokens exchanged, embedded',
      ours: `${perSecond(rate)} of processor time`,
      reference: perSecond(minExchanges),
      ratio: rate / minExchanges,
      floor: `≥ ${minExchanges}/s`,
      goal: `≥ ${minExchanges}/s`,
      passes: rate >= minExchanges,
    },
    {
      id: 'K2',
      what: 'request with an exchanged token, against the value of a key',
      ours: `${perSecond(used.ours)} of processor time`,
      reference: perSecond(used.reference),
      ratio: used.ratio,
      floor: `≥ ${minRatio}`,
      goal: `≥ ${minRatio}`,
      passes: used.ratio >= minRatio,
    },
  ];
}

async function exchanged(agent: Agent, { address }: BenchServer, form: string): Promise<string> {
  const sent = request(`${address}/api/v2/auth/exchange`, {
    agent,
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  sent.end(form);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  const body = (await json(answer)) as { access_token?: string; error?: string };
  if (body.access_token === undefined) throw new Error(`${answer.statusCode}: ${JSON.stringify(body)}`);
  return body.access_token;
}
