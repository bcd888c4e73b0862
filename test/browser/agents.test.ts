import { createHash } from 'node:crypto';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemAuditContext } from '../../src/core/caller.ts';
import { defaultMcpPolicy, type McpPolicy } from '../../src/features/agents/mcp-policy.ts';
import { readingTools } from '../../ui/src/agents/tools.ts';
import type { Person } from '../harness.ts';
import { barriersOn, overflowOf, signIn, visit } from './app-pages.ts';
import { openWorld, type World } from './real-ports.ts';
import { atPage } from './site-pages.ts';

// What people and administrators see of agents, against the real server.
let world: World;
let root: Person;
let ada: Person;
beforeAll(async () => {
  world = await openWorld();
  root = await world.h.person('Root', { admin: true });
  ada = await world.h.person('Ada');
});
afterAll(() => world.close());

async function setPolicy(change: Partial<McpPolicy>): Promise<void> {
  await world.h.app.services.mcpPolicy.put(systemAuditContext, '*', { ...defaultMcpPolicy, ...change });
}

type Called = {
  tool?: string;
  code?: string | null;
  sent?: Record<string, unknown>;
  clientId?: string;
  /** The id of the request that changed something. */
  requestId?: string;
  approvalId?: string;
  step?: 'confirmation_asked';
  objectId?: string;
};

/** Records a call of an agent of this person, like the endpoint. */
async function record(person: Person, called: Called) {
  const { tool = 'get_context', code = null, sent = {}, clientId, requestId } = called;
  const { approvalId = null, step = null, objectId = null } = called;
  await world.h.app.services.agentSessions.record({
    userId: person.user.id,
    clientId: clientId ?? 'postern-mcp',
    grantId: `grant of ${person.user.id}`,
    at: world.h.clock.now(),
    tool,
    code,
    durationMs: 1_234,
    definition: null,
    approvalId,
    step,
    objectId,
    arguments: sent,
    change:
      requestId === undefined
        ? null
        : { ...systemAuditContext, origin: { ...systemAuditContext.origin, requestId } },
  });
}

const hostile = `<img src=x onerror=alert(1)> مفتاح 👩‍👩‍👧‍👦 ${'w'.repeat(60)}`;
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const dialog = (page: Page) => page.getByRole('dialog');
const closed = (page: Page) => dialog(page).waitFor({ state: 'detached' });
const choose = (page: Page, setting: string, label: string) =>
  page.locator(`[data-path="${setting}"]`).getByText(label, { exact: true }).click();

test('MCP is switched on after a preview; a rule that stops agents names their people; and the change is reverted', {
  tags: 'core',
}, async () => {
  const { page, context, complaints } = await atPage(world, root, '/admin/mcp');
  await page.getByRole('switch', { name: /MCP is on/ }).press('Space');
  await page.getByRole('switch', { name: /Agents may change things/ }).press('Space');
  await choose(page, 'tools.deploy_environment', 'Allow');
  await page.getByRole('textbox', { name: /Instructions/ }).fill('Deploy\nnothing on Fridays.');
  await press(page, 'Review changes');
  await dialog(page).getByText('Tools that change something: deploy_environment').waitFor();
  await dialog(page).getByText('No tool becomes unavailable').waitFor();
  await press(page, 'Save for everyone');
  await press(page, 'Verify');
  await page.getByText('People get the new values').waitFor();
  await page.getByText('Availability: MCP is on: on').waitFor();
  await page.getByText('Ask one of your agents to list its tools and use one.').waitFor();
  const saved = await world.call('GET', '/config/mcp', { as: root });
  expect(saved.data.policy).toEqual({
    ...defaultMcpPolicy,
    enabled: true,
    allowChanges: true,
    instructions: 'Deploy\nnothing on Fridays.',
    tools: { ...defaultMcpPolicy.tools, deploy_environment: 'allow' },
  });

  for (const person of [ada, root, ada]) await record(person, { tool: 'get_site' });
  await choose(page, 'tools.get_site', 'Hide');
  await press(page, 'Review changes');
  await dialog(page).getByText('1 tool in use would be refused').waitFor();
  await dialog(page).getByText('get_site: 3 calls of agents of 2 people in the last 30 days').waitFor();
  await press(page, 'Save for everyone');
  await closed(page);

  await page.getByText('History', { exact: true }).click();
  await page.getByText('Tools that read: get_site').waitFor();
  await press(page, 'Revert to version 1');
  await dialog(page).getByText('No tool becomes unavailable').waitFor();
  await press(page, 'Revert for everyone');
  await page.getByText('Version 3', { exact: true }).waitFor();
  const reverted = await world.call('GET', '/config/mcp', { as: root });
  expect(reverted.data.policy).toEqual(saved.data.policy);
  expect(complaints()).toEqual([]);
  await context.close();
});

test('the snippet for each client has the address of this installation, in the format of that client', async () => {
  const { page, context } = await atPage(world, ada, '/settings/agents');
  await page.getByText('Add Postern to Claude Code, Codex, VS Code or Cursor').click();
  const url = `${world.uiUrl}/mcp`;
  const codex = [
    '[mcp_servers.postern]',
    `url = "${url}"`,
    '',
    '[mcp_servers.postern.oauth]',
    'client_id = "postern-mcp"',
    'callback_url = "http://127.0.0.1/callback"',
  ];
  const oauth = { clientId: 'postern-mcp' };
  const auth = { CLIENT_ID: 'postern-mcp' };
  await expect
    .poll(async () => {
      const [claude, toml, vscode = '', cursor = ''] = await page.locator('main pre').allTextContents();
      return [claude, toml, JSON.parse(vscode), JSON.parse(cursor)];
    })
    .toEqual([
      `claude mcp add --transport http --client-id postern-mcp postern ${url}`,
      codex.join('\n'),
      { servers: { postern: { type: 'http', url, oauth } } },
      { mcpServers: { postern: { url, auth } } },
    ]);
  await context.close();
});

test('a definition is created, refused a name that is taken, changed and deleted', {
  tags: 'core',
}, async () => {
  await world.h.repository('acme/agents');
  const { page, context, complaints } = await atPage(world, root, '/admin/agents');
  await page.getByText('No agent definitions yet').waitFor();
  await page.getByRole('link', { name: 'New definition' }).click();
  const fill = async (name: string) => {
    await page.getByLabel('Name').fill(name);
    await page.getByLabel('Purpose').fill('Deploys branches for reviewers');
  };
  // At the end of a long form, the first mistake is out of view.
  await press(page, 'Create definition');
  await page.getByText('Enter a name (up to 100 characters).').waitFor();
  await expect.poll(() => page.evaluate('document.activeElement.labels[0].textContent')).toContain('Name');
  await fill('Review apps');
  await page.getByText('What its agents get').click();
  const told = page.getByLabel('What its agents get');
  await told.getByText('Call get_context first').waitFor();
  await page.getByRole('textbox', { name: 'Instructions' }).fill('Say the address.');
  await expect.poll(() => told.textContent()).toMatch(/(?:^|\n)Say the address\.$/);
  await expect.poll(() => told.textContent()).not.toContain('get_context');
  await page.getByRole('combobox', { name: 'Clients' }).click();
  await page.getByRole('option', { name: 'postern-mcp' }).click();
  await page.keyboard.press('Escape');
  const reading = page.getByRole('region', { name: 'Tools that read' });
  const allowed = () => reading.getByRole('radio', { name: 'Allow', checked: true }).count();
  await expect.poll(allowed).toBe(readingTools.length);
  await press(page, 'None');
  await expect.poll(allowed).toBe(0);
  await press(page, 'All reading tools');
  await expect.poll(allowed).toBe(readingTools.length);
  const rule = (tool: string, label: string) =>
    page.getByRole('radiogroup', { name: tool }).getByText(label, { exact: true }).click();
  await rule('Tools that read get_logs', 'Ask');
  await rule('Tools that destroy something destroy_environment', 'Ask');
  await page.getByText('Tears an Environment down. The MCP policy hides it.').waitFor();
  await page.getByLabel('Selected repositories').check();
  await page.getByLabel('Choose repositories').fill('agents');
  await page.getByRole('option', { name: 'acme/agents' }).click();
  await page.getByLabel('Environments at once').fill('3');
  await page
    .getByRole('radiogroup', { name: 'Sites', exact: true })
    .getByText('Read', { exact: true })
    .click();
  await press(page, 'Create definition');
  await page.getByRole('row', { name: 'Review apps' }).getByText('postern-mcp').waitFor();

  await page.getByRole('link', { name: 'New definition' }).click();
  await fill('Review apps');
  await press(page, 'Create definition');
  await page.getByText('Another agent definition has the name Review apps.').waitFor();
  await page.getByRole('link', { name: '← Agents' }).click();

  await page.getByRole('link', { name: 'Review apps' }).click();
  await page.getByRole('heading', { level: 1, name: 'Review apps' }).waitFor();
  await rule('Tools that destroy something destroy_environment', 'Hide');
  await press(page, 'Save');
  await page.getByRole('status').filter({ hasText: 'Saved.' }).waitFor();
  const { data } = await world.call('GET', '/config/agents/definitions', { as: root });
  expect(data.definitions).toMatchObject([
    {
      name: 'Review apps',
      instructions: 'Say the address.',
      tools: { get_environment: 'allow', get_logs: 'ask', destroy_environment: 'hidden' },
      workspace: {
        repositories: { mode: 'selected', repositories: ['acme/agents'] },
        maxEnvironments: 3,
        environmentTtlHours: null,
        maySites: 'read',
      },
      clients: ['postern-mcp'],
    },
  ]);
  const file = (path: string) => page.getByLabel(`Commands: ${path}`);
  await file('.claude/rules/postern.md').getByText('Say the address.').waitFor();
  await page.getByRole('combobox', { name: 'Client', exact: true }).click();
  await page.getByRole('option', { name: 'Codex' }).click();
  await file('.codex/config.toml').getByText('client_id = "postern-mcp"').waitFor();
  await press(page, 'Delete');
  await press(page, 'Delete definition');
  await page.getByText('No agent definitions yet').waitFor();
  expect(complaints()).toEqual([]);
  await context.close();
});

test('models are added, and stay while a definition names them; earlier versions are shown and restored', {
  tags: 'core',
}, async () => {
  const { page, context, complaints } = await atPage(world, root, '/admin/agents/models');
  const save = async () => {
    await press(page, 'Review changes');
    await press(page, 'Save for everyone');
  };
  await press(page, 'Add model');
  await page.getByLabel('Name').fill('large 1');
  await page.getByLabel('Note').fill('Approved for source code');
  await press(page, 'Review changes');
  await press(page, 'Go to the setting');
  await page.getByText('This must begin with a letter or digit').waitFor();
  await expect.poll(() => page.evaluate('document.activeElement.labels[0].textContent')).toContain('Name');
  await page.getByLabel('Name').fill('large-1');
  await save();
  await page.getByRole('status').filter({ hasText: 'Saved.' }).waitFor();
  await page.getByRole('link', { name: '← Agents' }).click();
  await page.getByRole('link', { name: 'New definition' }).click();
  await page.getByLabel('Name').fill('Modelled');
  await page.getByLabel('Purpose').fill('Names a model');
  await page.getByRole('combobox', { name: 'Model' }).click();
  await page.getByRole('option', { name: 'large-1 (Approved for source code)' }).click();
  await press(page, 'Create definition');
  await page.getByRole('row', { name: 'Modelled' }).waitFor();
  await page.goto(`${world.uiUrl}/admin/agents/models`);
  await page.getByText('Named by Modelled.').waitFor();
  await press(page, 'Remove model 1');
  await save();
  await dialog(page).getByText('Postern refuses this change').waitFor();
  await dialog(page).getByText('large-1 (Modelled).').waitFor();
  await press(page, 'Keep editing');
  await press(page, 'Discard');
  const { data } = await world.call('GET', '/config/agents/definitions', { as: root });
  const { id } = data.definitions.find(({ name }: { name: string }) => name === 'Modelled');
  await world.call('DELETE', `/config/agents/definitions/${id}`, { as: root });

  await page.goto(`${world.uiUrl}/admin/agents/models?view=history`);
  const version = page.getByRole('listitem').filter({ hasText: 'Version 1' });
  await version.getByText('with large-1 (Approved for source code)').waitFor();
  await press(page, 'Revert to the default');
  await dialog(page).getByText('without large-1 (Approved for source code)').waitFor();
  await press(page, 'Revert for everyone');
  await page.getByRole('listitem').filter({ hasText: 'Version 2 · in effect' }).waitFor();
  const { data: now } = await world.call('GET', '/config/agents/models', { as: root });
  expect(now.models).toEqual([]);
  expect(complaints()).toEqual([]);
  await context.close();
});

test('instructions that were written against an older default are marked until an administrator keeps them', async () => {
  const body = { name: 'Older', purpose: 'Was written before', tools: {}, clients: [], instructions: 'Own.' };
  await world.call('POST', '/config/agents/definitions', { as: root, body });
  const { agentDefinitions } = world.h.app.services.read;
  const stored = (await agentDefinitions.list()).find(({ name }) => name === 'Older');
  if (stored === undefined) throw new Error('There is no definition.');
  await agentDefinitions.put({ ...stored, instructionsDefault: 'e'.repeat(64) });
  const { page, context, complaints } = await atPage(world, root, '/admin/agents');
  await page.getByRole('row', { name: 'Older' }).getByText('Older default').waitFor();
  await page.getByRole('link', { name: 'Older' }).click();
  await page.getByLabel('Default instructions').getByText('Call get_context first').waitFor();
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await press(page, 'Keep the instructions as they are');
  await page.getByText('written against an older default').waitFor({ state: 'detached' });
  expect(complaints()).toEqual([]);
  await context.close();
  await world.call('DELETE', `/config/agents/definitions/${stored.id}`, { as: root });
});

test('a person chooses what the agents of a client are for, unless an administrator chose', async () => {
  const body = { name: 'Chosen', purpose: 'Changes sites', tools: { get_site: 'allow' }, clients: [] };
  const made = await world.call('POST', '/config/agents/definitions', { as: root, body });
  const { page: form, context: ofRoot } = await atPage(world, root, `/admin/agents/${made.data.id}`);
  await form.getByLabel('Offer it to people').press('Space');
  await press(form, 'Save');
  await form.getByRole('status').filter({ hasText: 'Saved.' }).waitFor();
  await ofRoot.close();

  const fay = await world.h.person('Fay');
  await record(fay, { clientId: 'mcp_of_fay' });
  const { page, context, complaints } = await atPage(world, fay, '/settings/agents');
  await page.getByRole('combobox', { name: 'What agents of mcp_of_fay are for' }).click();
  await page.getByRole('option', { name: 'Chosen' }).click();
  await page.getByText('Changes sites').waitFor();
  await press(page, 'Save');
  await page.getByRole('status').filter({ hasText: 'Your choice is saved.' }).waitFor();
  const { data } = await world.call('GET', '/me/agents/access', { as: fay });
  expect(data.access).toMatchObject([{ clientId: 'mcp_of_fay', definition: { name: 'Chosen' } }]);
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await world.call('PATCH', `/config/agents/definitions/${made.data.id}`, {
    as: root,
    body: { clients: ['mcp_of_fay'] },
  });
  await page.reload();
  await page.getByText('Chosen by an administrator').waitFor();
  expect(complaints()).toEqual([]);
  await context.close();
  await world.call('DELETE', `/config/agents/definitions/${made.data.id}`, { as: root });
});

test('the page that allows a client offers the definitions, also on a phone and by the keyboard', async () => {
  await setPolicy({ enabled: true });
  const body = { name: `Offered ${hostile}`.slice(0, 100), purpose: hostile, tools: {}, clients: [] };
  const made = await world.call('POST', '/config/agents/definitions', {
    as: root,
    body: { ...body, isOffered: true },
  });
  const gil = await world.h.person('Gil');
  const context = await world.browser.newContext({ viewport: { width: 1280, height: 800 } });
  const { page } = await visit(context);
  const callback = 'http://127.0.0.1:45123/callback';
  const query = new URLSearchParams({
    client_id: 'postern-mcp',
    redirect_uri: callback,
    response_type: 'code',
    scope: 'openid mcp',
    resource: `${world.uiUrl}/mcp`,
    code_challenge: createHash('sha256').update('a verifier of the tests').digest('base64url'),
    code_challenge_method: 'S256',
  });
  await page.goto(`${world.uiUrl}/identity/auth?${query.toString()}`);
  await signIn(page, { email: 'gil@example.com', password: 'correct horse battery' });
  const choice = page.getByLabel('What its agents are for');
  await expect.poll(() => choice.inputValue()).toBe('');
  await expect.poll(() => barriersOn(page)).toEqual([]);
  for (const width of [1280, 375, 320]) {
    await page.setViewportSize({ width, height: 800 });
    await expect.poll(async () => [width, await overflowOf(page)]).toEqual([width, 0]);
  }
  await choice.focus();
  await page.keyboard.press('ArrowDown');
  // No server listens there, so the browser stops at the request.
  const answer = page.waitForRequest((request) => request.url().startsWith(callback));
  await page.getByRole('button', { name: 'Allow', exact: true }).press('Enter');
  expect(new URL((await answer).url()).searchParams.get('code')).toBeTruthy();
  const choices = await world.h.app.services.read.agentDefinitions.choicesOf(gil.user);
  expect(choices).toMatchObject([{ clientId: 'postern-mcp', definitionId: made.data.id }]);
  await context.close();
  await world.call('DELETE', `/config/agents/definitions/${made.data.id}`, { as: root });
});

test('a session is a timeline: the person reads what was sent, an administrator its names and sizes, another person nothing', {
  tags: 'core',
}, async () => {
  const eve = await world.h.person('Eve');
  const secret = 'a private matter';
  await record(eve, { tool: 'list_sites', sent: { search: secret }, clientId: 'mcp_of_eve' });
  await record(eve, { tool: 'delete_site', code: 'tool_hidden', clientId: 'mcp_of_eve' });
  const site = { siteId: 'k3v9x0q2m7' };
  const approvalId = 'apr_1';
  for (const result of [
    { sent: site, step: 'confirmation_asked' as const },
    { sent: site, code: 'approval_required', approvalId },
    { sent: { environmentId: 'env_1' }, tool: 'deploy_environment', code: 'engine_unavailable' },
    { sent: { repository: 'acme/shop' }, tool: 'create_environment', objectId: 'env_2' },
  ])
    await record(eve, { tool: 'delete_site', clientId: 'mcp_of_eve', ...result });
  for (let at = 0; at < 46; at++) await record(eve, { clientId: 'mcp_of_eve' });

  const own = await atPage(world, eve, '/settings/agents');
  await own.page
    .getByRole('row', { name: /mcp_of_eve/ })
    .getByText('Open')
    .waitFor();
  await own.page.getByRole('link', { name: 'mcp_of_eve' }).click();
  const calls = own.page.getByRole('main').getByRole('list').getByRole('listitem');
  await calls.first().getByText(secret).waitFor();
  await calls.first().getByText('done', { exact: true }).waitFor();
  await calls.nth(1).getByText('refused: tool_hidden').waitFor();
  // A question is no refusal.
  await calls.nth(2).getByText('asked the person to confirm').waitFor();
  await calls.nth(3).getByText('asked for approval').waitFor();
  await calls.nth(4).getByText('failed: engine_unavailable').waitFor();
  const leads = (at: number, name: string) =>
    calls.nth(at).getByRole('link', { name, exact: true }).getAttribute('href');
  await expect.poll(() => leads(3, 'site')).toBe('/sites/k3v9x0q2m7');
  await expect.poll(() => leads(3, 'approval')).toBe('/settings/agents/approvals/apr_1');
  await expect.poll(() => leads(4, 'Environment')).toBe('/environments/env_1');
  await expect.poll(() => leads(5, 'Environment')).toBe('/environments/env_2');
  await own.page.getByRole('button', { name: 'Page 2' }).click();
  await calls.nth(2).waitFor({ state: 'detached' });
  await expect.poll(() => calls.count()).toBe(2);
  const address = new URL(own.page.url()).pathname;
  await press(own.page, 'End access');
  await dialog(own.page).waitFor();
  await expect.poll(() => barriersOn(own.page)).toEqual([]);
  await press(own.page, 'End access now');
  await own.page.getByText('Access ended').waitFor();
  await own.context.close();

  const review = await atPage(world, root, '/admin/agents/sessions');
  await review.page
    .getByRole('row', { name: /mcp_of_eve/ })
    .getByText('Eve', { exact: true })
    .waitFor();
  await review.page.getByRole('link', { name: 'mcp_of_eve' }).click();
  await review.page.getByText('18 characters').waitFor();
  await expect.poll(() => review.page.content()).not.toContain(secret);
  await review.page.getByRole('link', { name: 'Eve' }).waitFor();
  await expect.poll(() => review.page.getByRole('button', { name: 'End access' }).count()).toBe(0);
  await record(ada, { clientId: 'mcp_of_ada' });
  await review.page.goto(`${world.uiUrl}/admin/agents/sessions`);
  await review.page.getByRole('link', { name: 'mcp_of_ada' }).click();
  await press(review.page, 'End access');
  await dialog(review.page).waitFor();
  await expect.poll(() => barriersOn(review.page)).toEqual([]);
  await press(review.page, 'End access now');
  await review.page.getByText('Access ended').waitFor();
  expect(review.complaints()).toEqual([]);
  await review.context.close();

  const other = await atPage(world, ada, address);
  await other.page.getByRole('alert').waitFor();
  await expect.poll(() => other.page.content()).not.toContain(secret);
  await other.context.close();
});

test('an approval that has expired is named, with what the person can do', async () => {
  const { page, context } = await atPage(world, ada, '/settings/agents/approvals/apr_none');
  const note = page.getByText('This approval has expired or does not exist');
  await expect.poll(() => note.count()).toBe(1);
  await context.close();
});

test('a call that waits is counted in the menu, shown exactly, and approved or refused by the person alone', {
  tags: 'core',
}, async () => {
  await setPolicy({ enabled: true });
  const kim = await world.h.person('Kim');
  const ask = (sent: Record<string, unknown>) =>
    world.h.app.services.agentApprovals.use({
      userId: kim.user.id,
      clientId: 'postern-mcp',
      grantId: null,
      tool: 'delete_site',
      arguments: sent,
      what: JSON.stringify(sent),
    });
  const first = { siteId: 'k3v9x0q2m7', name: 'Menu\u202egnp.exe' };
  const second = { siteId: 'a1b2c3d4e5' };
  await ask(first);
  await world.advance(1_000);
  await ask(second);
  const { page, context, complaints } = await atPage(world, kim, '/');
  await page.getByRole('heading', { name: 'Waiting for you' }).waitFor();
  await page.getByRole('link', { name: 'Agents 2 waiting for your approval' }).click();
  const look = page.getByRole('link', { name: 'Review the call of delete_site' });
  await look.nth(1).waitFor();
  await expect.poll(() => look.count()).toBe(2);
  await look.last().click();
  // The list that is left shows the same words.
  await page.getByRole('region', { name: 'The call' }).getByText('Deletes a site.').waitFor();
  const shown = async () => (await page.locator('main pre').textContent()) ?? '';
  await expect.poll(shown).toContain('Menu\\u202egnp.exe');
  await expect.poll(async () => JSON.parse(await shown())).toEqual(first);
  const address = new URL(page.url()).pathname;
  await press(page, 'Approve');
  await page.getByText('You approved this call').waitFor();
  expect((await ask(first)).kind).toBe('approved');

  await page.getByRole('link', { name: '← My agents' }).click();
  // The list may show the call that was approved until the server has answered.
  await look.nth(1).waitFor({ state: 'detached' });
  await look.click();
  await press(page, 'Refuse');
  await page.getByText('You refused this call').waitFor();
  expect((await ask(second)).kind).toBe('refused');
  await page.getByRole('link', { name: 'Agents', exact: true }).waitFor();
  expect(complaints()).toEqual([]);
  await context.close();

  const other = await atPage(world, root, address);
  await other.page.getByRole('alert').waitFor();
  await expect.poll(() => other.page.getByRole('button', { name: 'Approve' }).count()).toBe(0);
  await other.context.close();
});

test.each(['light', 'dark'] as const)(
  'in %s, every page about agents is accessible, and fits a phone',
  async (colorScheme) => {
    await setPolicy({ enabled: true });
    const body = {
      name: `${colorScheme} ${hostile}`.slice(0, 100),
      purpose: hostile,
      tools: { get_site: 'allow', delete_site: 'ask' },
    };
    const made = await world.call('POST', '/config/agents/definitions', {
      as: root,
      body: { ...body, clients: [`${colorScheme}-${'c'.repeat(80)}`] },
    });
    await record(root, { tool: 'list_sites', sent: { search: hostile, more: { deep: ['w'.repeat(900)] } } });
    await record(root, { tool: 'delete_site', code: 'site_not_found', sent: { siteId: 'k3v9x0q2m7' } });
    const asked = await world.h.app.services.agentApprovals.use({
      userId: root.user.id,
      clientId: 'c'.repeat(80),
      grantId: null,
      tool: 'delete_site',
      arguments: { siteId: 'k3v9x0q2m7', name: hostile },
      what: colorScheme,
    });
    const { data: sessions } = await world.call('GET', '/me/agents/sessions', { as: root });
    const { page, context, complaints } = await atPage(world, root, '/admin/mcp', { colorScheme });
    for (const path of [
      '/admin/mcp',
      '/admin/mcp?view=history',
      '/admin/mcp/clients',
      '/admin/agents',
      '/admin/agents/new',
      `/admin/agents/${made.data.id}`,
      '/admin/agents/models',
      '/admin/agents/models?view=history',
      '/admin/agents/sessions',
      `/admin/agents/sessions/${sessions[0].id}`,
      '/settings/agents',
      `/settings/agents/approvals/${asked.id}`,
      `/settings/agents/sessions/${sessions[0].id}`,
    ]) {
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.goto(`${world.uiUrl}${path}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await page.locator('[aria-label^="Loading"]').first().waitFor({ state: 'detached' });
      if (path === '/settings/agents') await page.getByText('Add Postern to Claude Code').click();
      await expect.poll(async () => [path, await barriersOn(page)]).toEqual([path, []]);
      for (const width of [768, 360, 320]) {
        await page.setViewportSize({ width, height: 800 });
        await expect.poll(async () => [path, width, await overflowOf(page)]).toEqual([path, width, 0]);
      }
    }
    expect(complaints()).toEqual([]);
    await context.close();
  },
);

test('a waiting client comes first, marked as unverified; it is allowed and blocked after a confirmation, also by keyboard', {
  tags: 'core',
}, async () => {
  await setPolicy({ enabled: true, clients: { registration: 'approval', metadataHosts: [] } });
  const { mcpClients, read } = world.h.app.services;
  const stored = () => read.mcpClients.find('mcp_waits');
  const name = 'Totally Official Postern';
  await mcpClients.registered({
    clientId: 'mcp_waits',
    name,
    redirectHosts: ['client.example', '127.0.0.1:1'],
  });
  await record(ada, {});
  const { page, context, complaints } = await atPage(world, root, '/admin/mcp');
  await page.getByRole('link', { name: /Clients \(\d+ waiting\)/ }).click();
  await page.getByRole('heading', { level: 1, name: 'Connected clients' }).waitFor();
  const first = page.getByRole('row').nth(1);
  await first.getByText(name).waitFor();
  await first.getByText('Unverified name').waitFor();
  await first.getByText('Waits for you').waitFor();
  await first.getByText('client.example, 127.0.0.1:1').waitFor();
  const known = page.getByRole('row', { name: /postern-mcp/ });
  await known.waitFor();
  await expect.poll(() => known.getByText('Unverified name').count()).toBe(0);

  await page.getByRole('button', { name: `Allow ${name}` }).press('Enter');
  await dialog(page).getByText('Nobody has checked this name.').waitFor();
  await expect.poll(() => barriersOn(page)).toEqual([]);
  expect((await stored())?.status).toBe('waiting');
  await press(page, 'Cancel');
  await dialog(page).waitFor({ state: 'detached' });
  expect((await stored())?.status).toBe('waiting');
  await page.getByRole('button', { name: `Allow ${name}` }).click();
  await press(page, 'Allow now');
  const row = page.getByRole('row', { name: new RegExp(name) });
  await row.getByText('Allowed').waitFor();
  await page.getByRole('button', { name: `Block ${name}` }).click();
  await dialog(page).getByText('Within a second, Postern refuses its requests.').waitFor();
  await press(page, 'Block now');
  await row.getByText('Blocked').waitFor();
  expect((await stored())?.status).toBe('blocked');
  for (const width of [1280, 375]) {
    await page.setViewportSize({ width, height: 800 });
    await expect
      .poll(async () => [width, await overflowOf(page), await barriersOn(page)])
      .toEqual([width, 0, []]);
  }
  expect(complaints()).toEqual([]);
  await context.close();
});

test('access can be ended even in a session that is older than a hundred others', async () => {
  const max = await world.h.person('Max');
  await record(max, { clientId: 'oldest' });
  for (let number = 0; number < 101; number += 1) {
    await world.advance(1_000);
    await record(max, { clientId: `mcp_${number}` });
  }
  const { data } = await world.call('GET', '/me/agents/sessions', {
    as: max,
    query: { page: '2', limit: '100' },
  });
  const oldest = data.find(({ clientId }: { clientId: string }) => clientId === 'oldest');
  for (const [person, home] of [
    [max, '/settings/agents/sessions'],
    [root, '/admin/agents/sessions'],
  ] as const) {
    const { page, context } = await atPage(world, person, `${home}/${oldest.id}`);
    await page.getByText('oldest').waitFor();
    if (person === max) {
      await press(page, 'End access');
      await press(page, 'End access now');
    }
    await page.getByText('Access ended').waitFor();
    await context.close();
  }
  const { data: after } = await world.call('GET', '/me/agents/sessions', {
    as: max,
    query: { id: oldest.id },
  });
  expect(after).toMatchObject([{ id: oldest.id, isOpen: false, endedAt: expect.any(String) }]);
});

test('a call that changed something links to its audit events, and its event back to the session', async () => {
  const requestId = '7e0c1a52-0000-4000-8000-000000000001';
  await record(ada, { tool: 'update_site', clientId: 'mcp_audited', requestId });
  const { page, context, complaints } = await atPage(world, root, '/admin/agents/sessions');
  await page.getByRole('link', { name: 'mcp_audited' }).click();
  await page.getByRole('link', { name: 'audit events' }).click();
  await page.getByRole('link', { name: 'Agent changed something' }).click();
  await page.getByText('· call 1').waitFor();
  await page.getByRole('link', { name: /^ags_/ }).click();
  await page.getByRole('heading', { level: 1, name: 'Agent session' }).waitFor();
  expect(complaints()).toEqual([]);
  await context.close();
});

test('while MCP is off, the page of sessions says so', async () => {
  await record(ada, {});
  await setPolicy({ enabled: false });
  const { page, context } = await atPage(world, ada, '/settings/agents');
  await page.getByText('MCP is off').waitFor();
  await page.getByRole('row').nth(1).waitFor();
  await expect.poll(() => barriersOn(page)).toEqual([]);
  await setPolicy({ enabled: true });
  await page.reload();
  await page.getByRole('row').nth(1).waitFor();
  await page.getByText('MCP is off').waitFor({ state: 'detached' });
  await context.close();
});
