import { instructionsOf } from './default-instructions.ts';
import type { AgentDefinition } from './definition.ts';

/**
 * The files that a client reads, so that its agents find this installation and follow a definition. They hold the address,
 * the id of the definition, the client and the instructions: no token, header or secret.
 */
export const exportClients = ['claude-code', 'codex', 'vscode', 'cursor', 'generic'] as const;
export type ExportClient = (typeof exportClients)[number];

export type ExportedFile = {
  /** Path from the root of a repository. */
  readonly path: string;
  readonly content: string;
};

export function exportFor(
  client: ExportClient,
  definition: Pick<AgentDefinition, 'id' | 'model' | 'instructions' | 'clients'>,
  address: string,
): ExportedFile[] {
  const { server, instructions, model } = formats[client];
  const text = instructionsText(definition, address);
  return [
    { path: server.path, content: server.content(address, clientIdOf(definition), definition.model) },
    ...(model === undefined || definition.model === null
      ? []
      : [{ path: model.path, content: model.content(definition.model) }]),
    { path: instructions.path, content: `${instructions.head}${text}` },
  ];
}

type Format = {
  readonly server: {
    readonly path: string;
    readonly content: (url: string, clientId: string | undefined, model: string | null) => string;
  };
  /** The file that names the model, for a client that reads it from a separate file. */
  readonly model?: { readonly path: string; readonly content: (model: string) => string };
  /** `head` is the front matter by which the client always reads the file. */
  readonly instructions: { readonly path: string; readonly head: string };
};

const mcpServers = (url: string, clientId: string | undefined) =>
  json({ mcpServers: { postern: { type: 'http', url, ...(clientId && { oauth: { clientId } }) } } });

const formats: Readonly<Record<ExportClient, Format>> = {
  'claude-code': {
    server: { path: '.mcp.json', content: mcpServers },
    model: { path: '.claude/settings.json', content: (model) => json({ model }) },
    instructions: { path: '.claude/rules/postern.md', head: '' },
  },
  codex: {
    server: { path: '.codex/config.toml', content: codexToml },
    instructions: { path: 'AGENTS.md', head: '' },
  },
  vscode: {
    server: {
      path: '.vscode/mcp.json',
      content: (url, clientId) =>
        json({ servers: { postern: { type: 'http', url, ...(clientId && { oauth: { clientId } }) } } }),
    },
    instructions: {
      path: '.github/instructions/postern.instructions.md',
      head: `---\ndescription: How to use Postern\napplyTo: "**"\n---\n\n`,
    },
  },
  cursor: {
    server: {
      path: '.cursor/mcp.json',
      content: (url, clientId) =>
        json({ mcpServers: { postern: { url, ...(clientId && { auth: { CLIENT_ID: clientId } }) } } }),
    },
    instructions: {
      path: '.cursor/rules/postern.mdc',
      head: '---\ndescription: How to use Postern\nalwaysApply: true\n---\n\n',
    },
  },
  generic: {
    server: { path: 'mcp.json', content: mcpServers },
    instructions: { path: 'AGENTS.md', head: '' },
  },
};

/** Clients replace `${NAME}` by variables of the person's machine, and have no way to write it as text. */
function clientIdOf({ clients }: Pick<AgentDefinition, 'clients'>): string | undefined {
  return clients.find((id) => !id.includes('${'));
}

/** In a code block, because clients read front matter, comments and imports of files elsewhere. */
function instructionsText(definition: Pick<AgentDefinition, 'id' | 'instructions'>, address: string): string {
  const instructions = instructionsOf(definition);
  const runs = instructions.match(/`+/g) ?? [];
  const fence = '`'.repeat(Math.max(3, ...runs.map(({ length }) => length + 1)));
  return `# Postern

Follow these instructions when you use the tools of ${address}. They are those of the agent definition ${definition.id}.

${fence}text
${instructions}
${fence}
`;
}

/** A top-level field comes before the tables. */
function codexToml(url: string, clientId: string | undefined, model: string | null): string {
  const head = model === null ? '' : `model = ${tomlString(model)}\n\n`;
  const server = `${head}[mcp_servers.postern]\nurl = ${tomlString(url)}\n`;
  if (clientId === undefined) return server;
  return `${server}
[mcp_servers.postern.oauth]
client_id = ${tomlString(clientId)}
callback_url = "http://127.0.0.1/callback"
`;
}

/** A basic string of TOML 1.0 escapes like JSON, and DEL as well. */
function tomlString(text: string): string {
  return JSON.stringify(text.toWellFormed()).replaceAll('\u007f', '\\u007f');
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
