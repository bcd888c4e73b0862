import { expect } from 'vitest';
import { Browser } from '../faults/browser.ts';
import { administrator } from '../faults/program.ts';

const page = '<!doctype html><title>Visited</title>';

/**
 * What an installation is for: the administrator signs in, creates a key, publishes a public and a private site with it,
 * opens them as browsers do, and revokes the key. Resolves to the address of the public site, which stays.
 */
export async function visit(uiUrl: string): Promise<string> {
  const [ada, stranger] = [new Browser(uiUrl), new Browser(uiUrl)];
  await ada.signIn(administrator.email, administrator.password);
  const request = {
    name: 'deploy',
    scopes: ['sites:write'],
    repositoryAccess: { mode: 'all' },
    ttlHours: 1,
  };
  const { data: key } = await ada.api('POST', '/me/tokens', request);
  const publish = async (visibility: 'public' | 'private'): Promise<string> => {
    const content = { type: 'text/html', body: Buffer.from(page) };
    const made = await ada.asKey(key.token, 'POST', `/sites?visibility=${visibility}`, content);
    expect([made.status, made.text]).toEqual([201, expect.any(String)]);
    return JSON.parse(made.text).data.url;
  };
  const [open, closed] = [await publish('public'), await publish('private')];
  expect((await stranger.open(open)).text).toBe(page);
  expect((await stranger.open(closed)).text).not.toContain('Visited');
  expect((await ada.open(closed)).text).toBe(page);

  const use = async () => (await ada.asKey(key.token, 'GET', '/auth/context')).status;
  expect(await use()).toBe(200);
  expect((await ada.api('DELETE', `/me/tokens/${key.id}`)).status).toBe(200);
  expect(await use()).toBe(401);
  for (const browser of [ada, stranger]) browser.disconnect();
  return open;
}
