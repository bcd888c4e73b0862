import type { Schemas } from '../api/contract.ts';

/** Descriptions of the tools of the MCP endpoint. tools.test.ts compares the names with the server's. */
export type ToolWords = { readonly name: keyof Schemas['McpPolicyTools']; readonly does: string };

const reading: readonly ToolWords[] = [
  { name: 'get_context', does: 'Shows for whom the agent acts, and what it may do.' },
  { name: 'list_repositories', does: 'Lists the registered repositories.' },
  { name: 'list_sites', does: 'Lists the person’s sites and public sites.' },
  { name: 'get_site', does: 'Reads one site: its address, visibility, version and expiry.' },
  { name: 'get_site_report', does: 'Lists what Postern found in a version of a site.' },
  { name: 'list_environments', does: 'Lists the Environments that the person may see.' },
  { name: 'get_environment', does: 'Reads one Environment: its status, services and addresses.' },
  { name: 'wait_for_environment', does: 'Waits until the status of an Environment is final.' },
  { name: 'list_builds', does: 'Lists builds.' },
  { name: 'get_logs', does: 'Reads the log of a build or of a service.' },
  { name: 'diagnose_environment', does: 'Explains why an Environment does not run.' },
  { name: 'preview_environment_config', does: 'Previews the Environment of a branch.' },
  { name: 'validate_configuration', does: 'Validates a postern.yaml.' },
];

const changing: readonly ToolWords[] = [
  { name: 'publish_site', does: 'Publishes files as a site, or as its new version.' },
  { name: 'update_site', does: 'Renames a site, or changes who sees it.' },
  { name: 'extend_site', does: 'Extends the expiry of a site.' },
  { name: 'create_environment', does: 'Creates an Environment of a branch.' },
  { name: 'configure_environment', does: 'Changes the settings of an Environment.' },
  { name: 'deploy_environment', does: 'Deploys the newest commit of the branch.' },
  { name: 'extend_environment', does: 'Extends the lease of an Environment.' },
  { name: 'cancel_build', does: 'Cancels a build that is under way.' },
];

const destroying: readonly ToolWords[] = [
  { name: 'delete_site', does: 'Deletes a site.' },
  { name: 'destroy_environment', does: 'Tears an Environment down.' },
];

export type ToolGroup = {
  readonly effect: 'read' | 'change' | 'destroy';
  readonly title: string;
  readonly tools: readonly ToolWords[];
};

export const toolGroups: readonly ToolGroup[] = [
  { effect: 'read', title: 'Tools that read', tools: reading },
  { effect: 'change', title: 'Tools that change something', tools: changing },
  { effect: 'destroy', title: 'Tools that destroy something', tools: destroying },
];

export const readingTools: readonly string[] = reading.map(({ name }) => name);

/** Rules for a tool, with their labels. */
export const toolRules = { allow: 'Allow', ask: 'Ask', hidden: 'Hide' } as const;

/** Describes what a tool does; empty for a tool that this app does not know. */
export function wordsOf(tool: string): string {
  return toolGroups.flatMap(({ tools }) => tools).find(({ name }) => name === tool)?.does ?? '';
}

export function destroys(tool: string): boolean {
  return destroying.some(({ name }) => name === tool);
}
