import { type ToolGroup, toolGroups, toolRules } from '../../agents/tools.ts';
import { bounds } from '../documents/bounds.ts';
import { sectionsOf } from '../documents/fields.ts';

/** Labels of the MCP policy. */
const saysOfGroup: Readonly<Record<ToolGroup['effect'], string>> = {
  read: 'A client without a definition may use all that are allowed here. A definition names the tools of its clients.',
  change:
    'An agent also needs “Agents may change things”, and a definition of its client that names the tool. Ask: the person approves each call.',
  destroy: 'The same. In addition, each call first returns a confirmation, which the agent must send back.',
};

export const mcpSections = sectionsOf(bounds.McpPolicy, [
  {
    title: 'Availability',
    says: 'The endpoint for agents, /mcp. Agents act for a person, with the rights of that person at most.',
    fields: [
      {
        path: 'enabled',
        label: 'MCP is on',
        says: 'When off, /mcp answers 404, and the identity provider issues no tokens for it.',
      },
      {
        path: 'allowChanges',
        label: 'Agents may change things',
        says: 'When off, agents only read, whatever the rules of the tools say.',
      },
      {
        path: 'publicSites',
        label: 'Sites for everyone',
        says: 'The rule for calls that publish for everyone or make a site public, if it is stricter than the rule of the tool.',
        labels: toolRules,
      },
      {
        path: 'instructions',
        label: 'Instructions',
        says: 'Postern gives every agent this text when it connects. Never put a secret in it.',
      },
    ],
  },
  ...toolGroups.map(({ title, effect, tools }) => ({
    title,
    says: saysOfGroup[effect],
    fields: tools.map(({ name, does }) => ({
      path: `tools.${name}` as const,
      label: name,
      says: does,
      labels: toolRules,
    })),
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
        labels: { open: 'Open', approval: 'Approval', closed: 'Closed' },
      },
      {
        path: 'clients.metadataHosts',
        label: 'Hosts of metadata documents',
        says: 'Clients whose id is an https address describe themselves there. The built-in provider reads documents of these hosts only, unless the registration is closed. Once you name a host, clients with a document at any other host are refused. Name the hosts of all clients in use, such as chatgpt.com for Codex, or leave the list empty.',
      },
      {
        path: 'callsPerMinute',
        label: 'Requests of one person',
        says: 'The most requests that all agents of one person may make in any 60 seconds.',
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
        unit: 'days',
      },
      {
        path: 'sessionReview.arguments',
        label: 'Arguments',
        says: 'Redacted: the person can read what an agent sent, without contents of files and values of variables.',
        labels: { redacted: 'Redacted', none: 'None' },
      },
    ],
  },
]);
