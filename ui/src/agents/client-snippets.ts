/** The client id of every installation with the built-in provider, for programs that do not register themselves. It has no secret. */
const clientId = 'postern-mcp';

const address = () => `${location.origin}/mcp`;

/** A command for the shell. */
export function claudeCode(): string {
  return `claude mcp add --transport http --client-id ${clientId} postern ${address()}`;
}

/** For `~/.codex/config.toml`. Then `codex mcp login postern` opens the sign-in. */
export function codex(): string {
  return `[mcp_servers.postern]
url = ${JSON.stringify(address())}

[mcp_servers.postern.oauth]
client_id = ${JSON.stringify(clientId)}
callback_url = "http://127.0.0.1/callback"`;
}

/** For `.vscode/mcp.json`. */
export function vscode(): string {
  return json({ servers: { postern: { type: 'http', url: address(), oauth: { clientId } } } });
}

/** For `.cursor/mcp.json`. */
export function cursor(): string {
  return json({ mcpServers: { postern: { url: address(), auth: { CLIENT_ID: clientId } } } });
}

function json(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
