import { type ToolGroup, toolGroups, toolRules } from '../../agents/tools.ts';
import type { Field, Section } from '../documents/fields.ts';

/** Labels of the MCP policy. fields.test.ts compares paths and defaults with the server's. */
const saysOfGroup: Readonly<Record<ToolGroup['effect'], string>> = {
  read: 'A client without a definition may use all that are allowed here. A definition names the tools of its clients.',
  change:
    'An agent also needs “Agents may change things”, and a definition of its client that names the tool. Ask: the person approves each call.',
  destroy: 'The same. In addition, each call first returns a confirmation, which the agent must send back.',
};

function fieldsOfGroup({ effect, tools }: ToolGroup): readonly Field[] {
  return tools.map(({ name, does }) => ({
    path: `tools.${name}`,
    label: name,
    says: does,
    kind: 'choice',
    labels: toolRules,
    standard: effect === 'read' ? 'allow' : 'hidden',
  }));
}

export const mcpSections: readonly Section[] = [
  {
    title: 'Availability',
    says: 'The endpoint for agents, /mcp. Agents act for a person, with the rights of that person at most.',
    fields: [
      {
        path: 'enabled',
        label: 'MCP is on',
        says: 'When off, /mcp answers 404, and the identity provider issues no tokens for it.',
        kind: 'switch',
        on: 'on',
        off: 'off',
        standard: false,
      },
      {
        path: 'allowChanges',
        label: 'Agents may change things',
        says: 'When off, agents only read, whatever the rules of the tools say.',
        kind: 'switch',
        on: 'on',
        off: 'off',
        standard: false,
      },
      {
        path: 'publicSites',
        label: 'Sites for everyone',
        says: 'The rule for calls that publish for everyone or make a site public, if it is stricter than the rule of the tool.',
        kind: 'choice',
        labels: toolRules,
        standard: 'ask',
      },
      {
        path: 'instructions',
        label: 'Instructions',
        says: 'Postern gives every agent this text when it connects. Never put a secret in it.',
        kind: 'text',
        maxCharacters: 4_000,
        standard: '',
      },
    ],
  },
  ...toolGroups.map((group) => ({
    title: group.title,
    says: saysOfGroup[group.effect],
    fields: fieldsOfGroup(group),
    isDense: true,
  })),
  {
    title: 'Clients',
    says: 'The programs in which agents run. Each person still allows each client.',
    fields: [
      {
        path: 'clients.registration',
        label: 'Registration',
        says: 'Open: clients may register themselves at the built-in provider (RFC 7591). Approval: an administrator allows each new one on the page Clients. Closed: they use the client id postern-mcp.',
        kind: 'choice',
        labels: { open: 'Open', approval: 'Approval', closed: 'Closed' },
        standard: 'closed',
      },
      {
        path: 'clients.metadataHosts',
        label: 'Hosts of metadata documents',
        says: 'Clients whose id is an https address describe themselves there. The built-in provider reads documents of these hosts only, unless the registration is closed. Once you name a host, clients with a document at any other host are refused. Name the hosts of all clients in use, such as chatgpt.com for Codex, or leave the list empty.',
        kind: 'words',
        standard: [],
      },
      {
        path: 'callsPerMinute',
        label: 'Requests of one person',
        says: 'The most requests that all agents of one person may make in any 60 seconds.',
        kind: 'number',
        unit: '',
        min: 1,
        max: 10_000,
        standard: 120,
      },
    ],
  },
  {
    title: 'Session review',
    says: 'Postern records every call of an agent. Administrators see names and sizes of arguments, never their values.',
    fields: [
      {
        path: 'sessionReview.keepDays',
        label: 'Keep calls',
        says: 'Counted from the last call of the session.',
        kind: 'number',
        unit: 'days',
        min: 1,
        max: 400,
        standard: 30,
      },
      {
        path: 'sessionReview.arguments',
        label: 'Arguments',
        says: 'Redacted: the person can read what an agent sent, without contents of files and values of variables.',
        kind: 'choice',
        labels: { redacted: 'Redacted', none: 'None' },
        standard: 'redacted',
      },
    ],
  },
];
