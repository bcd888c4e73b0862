import { Agent, request as send } from 'node:http';
import { archiveOf } from '../api/sites/uploads.ts';
import { Browser } from './browser.ts';
import { type Fleet, type FleetOptions, type Member, startFleet, timeUntil } from './fleet.ts';
import { administrator } from './program.ts';

/**
 * A fleet with data: an administrator with a session, a key, a public and a private site, and a visitor with access. Each
 * request returns the status that a client without retries gets.
 */
export type LivedInFleet = Fleet & {
  readonly ada: Browser;
  readonly key: { readonly id: string; readonly value: string };
  readonly open: Site;
  readonly closed: Site;
  ask(url: string, port: number, headers?: Record<string, string>, sent?: Body): Promise<Answer>;
  withKey(web: Member, value?: string): () => Promise<number>;
  publicPage(gateway: Member): () => Promise<number>;
  /** @throws Error when the response has the content although `cookie` is no grant */
  privatePage(gateway: Member, cookie: string): () => Promise<number>;
  /** Publishes a new version of a separate site with a key; 200 when it is live. */
  change(web: Member): () => Promise<number>;
  publish(visibility: 'public' | 'private', text: string): Promise<Site>;
  makeKey(name: string, scopes?: readonly string[]): Promise<{ id: string; value: string }>;
  /** The cookie of a new grant, which lasts five minutes at most. */
  freshGrant(): Promise<string>;
};

export type Site = { readonly id: string; readonly url: string };
type Body = { readonly method: string; readonly type: string; readonly bytes: Buffer };
export type Answer = { readonly status: number; readonly text: string };

export async function startLivedInFleet(
  postgresBin: string,
  options: FleetOptions = {},
): Promise<LivedInFleet> {
  const fleet = await startFleet(postgresBin, options);
  try {
    return await moveIn(fleet);
  } catch (error) {
    await fleet.stop();
    throw error;
  }
}

async function moveIn(fleet: Fleet): Promise<LivedInFleet> {
  const agent = new Agent({ keepAlive: true });
  const ada = new Browser(fleet.uiUrl, { contentPort: fleet.gateways[1].ports.gateway });
  await ada.signIn(administrator.email, administrator.password);
  // The tests send more requests a minute than the default limit of an owner.
  await widen(ada, '/config/api-keys', ({ policy }) => ({
    ...policy,
    rateLimitPerMinute: 1_000_000,
    maxActivePersonalKeysPerUser: 1_000,
  }));
  await widen(ada, '/config/sites', ({ config }) => ({
    ...config,
    quotas: { ...config.quotas, sitesPerOwner: 1_000_000 },
  }));

  async function makeKey(name: string, scopes: readonly string[] = ['repos:read']) {
    const wanted = { name, scopes, repositoryAccess: { mode: 'all' }, ttlHours: 24 };
    const made = await ada.api('POST', '/me/tokens', wanted);
    if (made.status !== 201) throw new Error(`Answered ${made.status}: ${made.text}`);
    return { id: made.data.id as string, value: made.data.token as string };
  }

  async function publish(visibility: 'public' | 'private', text: string): Promise<Site> {
    const { type, bytes } = archiveOf({ 'index.html': text });
    const made = await ada.upload(`/sites?visibility=${visibility}`, type, bytes);
    if (made.status !== 201) throw new Error(`Answered ${made.status}: ${made.text}`);
    return made.data;
  }

  const key = await makeKey('robot');
  const open = await publish('public', 'for everyone');
  const closed = await publish('private', 'for Ada only');
  await ada.open(closed.url);

  async function ask(
    url: string,
    port: number,
    headers: Record<string, string> = {},
    sent?: Body,
  ): Promise<Answer> {
    const { host, pathname, search } = new URL(url);
    return await new Promise((resolve, reject) => {
      const request = send(
        {
          host: '127.0.0.1',
          port,
          agent,
          method: sent?.method ?? 'GET',
          path: pathname + search,
          headers: {
            host,
            ...headers,
            ...(sent === undefined
              ? {}
              : { 'content-type': sent.type, 'content-length': String(sent.bytes.length) }),
          },
          timeout: 2 * 60_000,
        },
        (response) => {
          const pieces: Buffer[] = [];
          response.on('data', (piece: Buffer) => void pieces.push(piece));
          response.on('error', reject);
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, text: Buffer.concat(pieces).toString() }),
          );
        },
      );
      request.on('timeout', () => request.destroy(new Error('No answer within two minutes.')));
      request.on('error', (error) => reject(Object.assign(error, { wasBetween: request.reusedSocket })));
      request.end(sent?.bytes);
    });
  }

  const changed = await publish('public', 'to be changed');
  const deployer = await makeKey('deploys', ['sites:write']);
  let edition = 0;

  return {
    ...fleet,
    ada,
    key,
    open,
    closed,
    ask,
    publish,
    makeKey,
    change: (web) => async () => {
      const path = `/api/v2/sites/${changed.id}/content`;
      const bytes = Buffer.from(`<p>Edition ${(edition += 1)}</p>`);
      const authorization = { authorization: `Bearer ${deployer.value}` };
      const sent = { method: 'PUT', type: 'text/html', bytes };
      return (await ask(fleet.uiUrl + path, web.ports.web, authorization, sent)).status;
    },
    withKey:
      (web, value = key.value) =>
      async () =>
        (await ask(`${fleet.uiUrl}/api/v2/auth/context`, web.ports.web, { authorization: `Bearer ${value}` }))
          .status,
    publicPage: (gateway) => async () => (await ask(open.url, gateway.ports.gateway)).status,
    privatePage: (gateway, cookie) => async () => {
      const { status, text } = await ask(closed.url, gateway.ports.gateway, {
        cookie,
        'sec-fetch-mode': 'no-cors',
        'sec-fetch-dest': 'image',
      });
      // Whatever the status, only a client with a grant may get the content.
      if (!cookie.includes('postern_grant') && text.includes('for Ada only'))
        throw new Error('Private bytes got out.');
      return status;
    },
    async freshGrant() {
      await timeUntil(async () => ((await ada.open(closed.url)).text === 'for Ada only' ? 200 : 0), 200);
      return ada.cookies(closed.url);
    },
    async stop() {
      agent.destroy();
      ada.disconnect();
      await fleet.stop();
    },
  };
}

// Parsed JSON, changed a little and sent back.
// oxlint-disable-next-line typescript/no-explicit-any
export async function widen(ada: Browser, path: string, change: (data: any) => object): Promise<void> {
  const { headers, data } = await ada.api('GET', path);
  const changed = await ada.api('PUT', path, change(data), { 'if-match': String(headers['etag']) });
  if (changed.status !== 200) throw new Error(`Answered ${changed.status}: ${changed.text}`);
}
