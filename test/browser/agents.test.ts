import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemAuditContext } from '../../src/core/caller.ts';
import { defaultMcpPolicy, type McpPolicy } from '../../src/features/agents/mcp-policy.ts';
import type { Person } from '../harness.ts';
import { barriersOn, overflowOf } from './app-pages.ts';
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

type Called = { tool?: string; code?: string | null; sent?: Record<string, unknown>; clientId?: string };

/** As the endpoint records a call of an agent of this person. */
async function record(person: Person, { tool = 'get_context', code = null, sent = {}, clientId }: Called) {
  await world.h.app.services.agentSessions.record({
    userId: person.user.id,
    clientId: clientId ?? 'postern-mcp',
    grantId: '',
    at: world.h.clock.now(),
    tool,
    code,
    durationMs: 1_234,
    arguments: sent,
    change: null,
  });
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const dialog = (page: Page) => page.getByRole('dialog');
const choose = (page: Page, setting: string, label: string) =>
  page.locator(`[data-path="${setting}"]`).getByText(label, { exact: true }).click();

test('MCP is switched on after a look at what changes; a rule that stops someone says whom; and it is taken back', async () => {
  const { page, context, complaints } = await atPage(world, root, '/admin/mcp');
  await page.getByRole('switch', { name: /MCP is on/ }).press('Space');
  await page.getByRole('switch', { name: /Agents may change things/ }).press('Space');
  await choose(page, 'tools.deploy_environment', 'Allow');
  await page.getByRole('textbox', { name: /Instructions/ }).fill('Deploy\nnothing on Fridays.');
  await press(page, 'Review changes');
  await dialog(page).getByText('Tools that change something: deploy_environment').waitFor();
  await dialog(page).getByText('No call stops').waitFor();
  await press(page, 'Save for everyone');
  await page.getByText('Saved. Takes effect everywhere').waitFor();
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
  await page.getByText('Saved. Takes effect everywhere').waitFor();

  await page.getByText('History', { exact: true }).click();
  await page.getByText('Tools that read: get_site').waitFor();
  await press(page, 'Revert to version 1');
  await dialog(page).getByText('No call stops').waitFor();
  await press(page, 'Revert for everyone');
  await page.getByText('Version 3').waitFor();
  const reverted = await world.call('GET', '/config/mcp', { as: root });
  expect(reverted.data.policy).toEqual(saved.data.policy);
  expect(complaints()).toEqual([]);
  await context.close();
});

test('what to paste into each client has the address of this installation, in the format of that client', async () => {
  const { page, context } = await atPage(world, root, '/admin/mcp');
  await page.getByText('Add Postern to Claude Code, Codex, VS Code or Cursor').click();
  const [claude = '', codex = '', vscode = '', cursor = ''] = await page
    .locator('main pre')
    .allTextContents();
  const url = `${world.uiUrl}/mcp`;
  expect(claude).toBe(`claude mcp add --transport http --client-id postern-mcp postern ${url}`);
  expect(codex.split('\n')).toEqual([
    '[mcp_servers.postern]',
    `url = "${url}"`,
    '',
    '[mcp_servers.postern.oauth]',
    'client_id = "postern-mcp"',
    'callback_url = "http://127.0.0.1/callback"',
  ]);
  const oauth = { clientId: 'postern-mcp' };
  expect(JSON.parse(vscode)).toEqual({ servers: { postern: { type: 'http', url, oauth } } });
  const auth = { CLIENT_ID: 'postern-mcp' };
  expect(JSON.parse(cursor)).toEqual({ mcpServers: { postern: { url, auth } } });
  await context.close();
});

test.each(['light', 'dark'] as const)(
  'in %s, neither page about MCP stands in anyone’s way, and each fits a phone',
  async (colorScheme) => {
    await setPolicy({ enabled: true });
    const { page, context, complaints } = await atPage(world, root, '/admin/mcp', { colorScheme });
    for (const path of ['/admin/mcp', '/admin/mcp?view=history']) {
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.goto(`${world.uiUrl}${path}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await page.locator('[aria-label^="Loading"]').first().waitFor({ state: 'detached' });
      const details = page.getByText('Add Postern to Claude Code');
      if ((await details.count()) > 0) await details.click();
      expect([path, await barriersOn(page)]).toEqual([path, []]);
      for (const width of [768, 360, 320]) {
        await page.setViewportSize({ width, height: 800 });
        expect([path, width, await overflowOf(page)]).toEqual([path, width, 0]);
      }
    }
    expect(complaints()).toEqual([]);
    await context.close();
  },
);
