import { expect, test } from 'vitest';
import { environmentGrants, siteGrants } from '../../features/grants/grants.ts';
import { checkRules, unreachableContent, warnOfHosts } from './host-rules.ts';
import { createLog } from '../../platform/log.ts';

/** What a start logs with these addresses. */
function toldAtStart(contentUrl: string, allowSharedApex = false, environmentsContentUrl = contentUrl) {
  const lines: string[] = [];
  const config = {
    uiUrl: 'https://postern.example.com',
    contentUrl,
    environmentsContentUrl,
    allowSharedApex,
  };
  warnOfHosts(config, createLog({ level: 'warn', sink: { write: (line) => void lines.push(line) } }));
  return { config, lines };
}

test('GW-05 a content domain that shares the web app’s is told at the start, in the words of the doctor', () => {
  const { config, lines } = toldAtStart('https://sites.example.com');
  const { says, fix, check } = checkRules(config, siteGrants);
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    { level: 40, time: expect.any(String), check, fix, msg: says },
  ]);
  expect(says).toContain('share a registrable domain');
  expect(fix).toContain('SITES_ALLOW_SHARED_APEX=true on every process');
});

test('GW-05 a start warns of a domain of Environments that shares the web app’s, and names ENVIRONMENTS_CONTENT_URL', () => {
  const { config, lines } = toldAtStart('https://sites.example.net', false, 'https://branches.example.com');
  const { says, fix, check } = checkRules(config, environmentGrants);
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    { level: 40, time: expect.any(String), check, fix, msg: says },
  ]);
  expect([check, says, fix]).toEqual([
    'hosts.private_environments',
    expect.stringContaining('ENVIRONMENTS_CONTENT_URL share a registrable domain'),
    expect.stringContaining('Set ENVIRONMENTS_CONTENT_URL'),
  ]);
});

test.each([
  ['a separate content domain', 'https://sites.example.net', false],
  ['one that is shared on purpose', 'https://sites.example.com', true],
])('a start says nothing of %s', (_what, contentUrl, allowSharedApex) => {
  expect(toldAtStart(contentUrl, allowSharedApex).lines).toEqual([]);
});

test.each([
  ['http://localhost:3000', 'http://sites.localhost:3001', false],
  ['https://postern.example.com', 'http://sites.localhost:3001', true],
  ['https://postern.example.com', 'https://sites.example.net', false],
])('with the UI at %s, sites at %s lead to this machine alone: %s', (uiUrl, contentUrl, isUnreachable) => {
  const config = { uiUrl, contentUrl, environmentsContentUrl: 'https://branches.example.org' };
  expect(unreachableContent(config, siteGrants)).toBe(isUnreachable);
});
