import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { githubRule, githubUrl, trusting, trustingAll } from '../api/federation/platforms.ts';
import { setPolicy } from '../api/access/cast.ts';
import type { Person } from '../harness.ts';
import { openPlatform } from '../id-tokens/platforms.ts';
import { barriersOn, create, fillIn, traces } from './app-pages.ts';
import { openWorld, type World } from './real-ports.ts';
import { atPage } from './site-pages.ts';

// Federated keys, as administrators set them up: issuers, rules, a trial and the job to copy.
let world: World;
let root: Person;
beforeAll(async () => {
  world = await openWorld();
  root = await world.h.person('Root', { admin: true });
  await world.h.repository('acme/website');
});
afterAll(() => world.close());

const dialog = (page: Page) => page.getByRole('dialog');
const closed = (page: Page) => dialog(page).waitFor({ state: 'detached' });
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const pipelines = (page: Page) => page.getByRole('region', { name: 'Pipelines', exact: true });
const rulesIn = (page: Page) => pipelines(page).getByRole('listitem');
const policy = async () => (await world.call('GET', '/config/api-keys', { as: root })).data.policy;

/** By the keyboard, because the message about the last save covers the button for a while. */
const review = (page: Page) =>
  page.getByRole('button', { name: 'Review changes', exact: true }).press('Enter');

async function save(page: Page): Promise<void> {
  await review(page);
  await press(page, 'Save for everyone');
  await closed(page);
}

/** An ID token of a job on GitHub, for this installation. */
async function idToken(claims: object = {}): Promise<string> {
  const platform = openPlatform('github', githubUrl);
  return await platform.sign({ ...platform.claims(world.h.clock.now(), world.uiUrl), ...claims });
}

test('an administrator trusts GitHub, creates a federated key, tries an ID token and copies the job', {
  tags: 'core',
}, async () => {
  const { page, context, complaints } = await atPage(world, root, '/admin/access-controls');
  await press(page, 'Add issuer');
  await expect
    .poll(() => page.getByRole('textbox', { name: 'Address', exact: true }).inputValue())
    .toBe(githubUrl);
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await review(page);
  await dialog(page).getByText(`with ${githubUrl} (GitHub Actions)`).waitFor();
  await press(page, 'Save for everyone');
  await closed(page);
  expect((await policy()).federation).toEqual({ issuers: [{ url: githubUrl, preset: 'github' }] });

  await page.goto(`${world.uiUrl}/admin/service-keys/new`);
  await fillIn(page, { name: 'website', preset: 'Publish sites from CI', where: [] });
  await page.getByLabel('No value: a federated key, for pipelines').check();
  await expect.poll(() => page.getByText('Who will use it?').count()).toBe(0);
  await create(page);
  await page.getByText('Correct the marked fields.').waitFor();
  await page.getByLabel('Repository id').fill('598270112');
  await page.getByLabel('Owner id').fill('9919');
  await page.getByLabel('Limit the jobs by').selectOption('Environment of GitHub');
  await page.getByLabel('Environment of GitHub', { exact: true }).fill('production');
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await create(page);

  // There is no value to store: the page of the key comes at once.
  await page.getByRole('heading', { level: 1, name: 'website' }).waitFor();
  await page.getByText('The key is federated').waitFor();
  await expect.poll(() => rulesIn(page).first().innerText()).toMatch(/production[^]*15 minutes[^]*once/);
  await expect.poll(() => page.getByRole('button', { name: /Replace|Erase/ }).count()).toBe(0);
  const id = new URL(page.url()).pathname.split('/').at(-1) ?? '';

  await pipelines(page).getByText('The job to copy').click();
  const job = pipelines(page).locator('pre');
  for (const line of [
    'environment: "production"',
    'id-token: write',
    `POSTERN_URL: ${world.uiUrl}`,
    `POSTERN_KEY_ID: ${id}`,
    'deploy dist --site SITE_ID --public',
  ])
    await expect.poll(() => job.innerText()).toContain(line);
  await pipelines(page).getByText('GitLab CI').click();
  await expect.poll(() => job.innerText()).toContain(`aud: ${world.uiUrl}`);
  await pipelines(page).getByText('Kubernetes').click();
  await expect.poll(() => job.innerText()).toContain(`audience: "${world.uiUrl}"`);

  const sent: string[] = [];
  page.on('request', (request) => void sent.push(`${request.url()} ${request.postData() ?? ''}`));
  await press(page, 'Try an ID token');
  await press(page, 'Compare with the rules');
  await dialog(page).getByText('Paste an ID token, or its claims as JSON.').waitFor();
  const wrong = await idToken({ repository_id: '1' });
  await dialog(page).getByLabel('ID token of a job').fill(wrong);
  await press(page, 'Compare with the rules');
  await dialog(page).getByText('No rule accepts these claims').waitFor();
  const differences = dialog(page).locator('tbody tr');
  await expect
    .poll(async () => (await differences.allTextContents()).toSorted())
    .toEqual(['environmentproductionabsent, or not a text', 'repository_id5982701121']);
  await expect.poll(() => barriersOn(page)).toEqual([]);
  const right = await idToken({ environment: 'production' });
  await dialog(page).getByLabel('ID token of a job').fill(right);
  await press(page, 'Compare with the rules');
  await dialog(page).getByText('A rule accepts these claims').waitFor();
  await dialog(page).getByText('Postern did not check the signature').waitFor();
  await press(page, 'Close');
  await closed(page);
  // The claims reached the server, and no token did; nothing of it is left in the page.
  expect(sent.filter((one) => one.includes('/trust/try'))).toHaveLength(2);
  for (const token of [wrong, right]) {
    for (const part of token.split('.')) expect(sent.join('\n')).not.toContain(part);
    await expect.poll(() => traces(page)).not.toContain(token.split('.')[2]);
  }

  await press(page, 'Add a rule');
  await press(page, 'Add the rule');
  await expect.poll(() => dialog(page).getByText('Fill this in.').count()).toBe(3);
  await dialog(page).getByLabel('Repository id').fill('7');
  await dialog(page).getByLabel('Owner id').fill('8');
  await dialog(page).getByLabel('Branch or tag').fill('refs/heads/*x');
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await press(page, 'Add the rule');
  await dialog(page).getByText('may have only one *, at its end').waitFor();
  await dialog(page).getByLabel('Branch or tag').fill('refs/heads/release-*');
  await press(page, 'Add the rule');
  await closed(page);
  await expect.poll(() => rulesIn(page).count()).toBe(2);
  await page.getByText('A trust rule was added').waitFor();
  await rulesIn(page).nth(1).getByRole('button').click();
  await dialog(page).getByText('end within a second').waitFor();
  await press(page, 'Remove the rule');
  await closed(page);
  await expect.poll(() => rulesIn(page).count()).toBe(1);
  await page.getByText('A trust rule was removed').waitFor();
  await expect.poll(() => barriersOn(page)).toEqual([]);
  expect(complaints()).toEqual([]);
  await context.close();
});

test('the value of a key is erased for ever after a confirmation, and lists say that it has none', async () => {
  await setPolicy(world.h, trustingAll);
  const key = await world.h.serviceKey({ name: 'old pipeline' });
  await world.call('POST', `/tokens/${key.id}/trust`, { as: root, body: githubRule });
  const { page, context, complaints } = await atPage(world, root, `/admin/service-keys/${key.id}`);
  await page.getByText('Stored where it is used').waitFor();
  await press(page, 'Erase the value');
  await dialog(page).getByText('for ever', { exact: true }).waitFor();
  await press(page, 'Keep the value');
  await closed(page);
  expect((await world.call('GET', '/auth/context', { as: key })).status).toBe(200);
  await press(page, 'Erase the value');
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await press(page, 'Erase it for ever');
  await closed(page);
  await page.getByText('The key is federated').waitFor();
  await page.getByText('The value was erased for ever').waitFor();
  await expect.poll(() => page.getByRole('button', { name: /Replace|Erase/ }).count()).toBe(0);
  expect((await world.call('GET', '/auth/context', { as: key })).status).toBe(401);
  await page.goto(`${world.uiUrl}/admin/service-keys?search=old`);
  const row = page.getByRole('row').filter({ hasText: 'old pipeline' });
  await row.getByText('Federated').waitFor();
  await expect.poll(() => row.getByRole('button', { name: /^Replace/ }).count()).toBe(0);
  expect(complaints()).toEqual([]);
  await context.close();
});

test('a change of another setting keeps the trusted issuers, with the public keys that were pasted', async () => {
  const platform = openPlatform('gitlab', 'https://gitlab.example.com');
  const trusted = trusting(platform);
  await setPolicy(world.h, trusted);
  const { page, context, complaints } = await atPage(world, root, '/admin/access-controls');
  await page.getByRole('textbox', { name: 'Limits Requests per owner', exact: true }).fill('431');
  await save(page);
  expect(await policy()).toMatchObject({ rateLimitPerMinute: 431, ...trusted });

  const keys = page.getByLabel('Key set');
  const secret = { ...platform.publicKey, d: 'AQAB' };
  for (const [text, mistake] of [
    ['not json', 'Paste a key set: a JSON object with the list keys.'],
    [JSON.stringify({ keys: [secret] }), 'This has a private key.'],
  ] as const) {
    await keys.fill(text);
    await review(page);
    await page.getByText(mistake).waitFor();
  }
  const other = openPlatform('gitlab', 'https://gitlab.example.com');
  await keys.fill(JSON.stringify({ keys: [other.publicKey] }));
  await review(page);
  await dialog(page).getByText(`with the keys ${other.kid}`).waitFor();
  await press(page, 'Save for everyone');
  await closed(page);
  expect((await policy()).federation.issuers[0].jwks).toEqual({ keys: [other.publicKey] });

  await press(page, 'Remove issuer 1');
  await save(page);
  expect((await policy()).federation).toEqual({ issuers: [] });
  expect(complaints()).toEqual([]);
  await context.close();
});
