/** The tools of the MCP endpoint, for its policy. */
export const readToolNames = [
  'get_context',
  'list_repositories',
  'list_sites',
  'get_site',
  'get_site_report',
  'list_environments',
  'get_environment',
  'wait_for_environment',
  'list_builds',
  'get_logs',
  'diagnose_environment',
  'preview_environment_config',
  'validate_configuration',
] as const;

export const changeToolNames = [
  'publish_site',
  'update_site',
  'extend_site',
  'delete_site',
  'create_environment',
  'configure_environment',
  'deploy_environment',
  'extend_environment',
  'destroy_environment',
  'cancel_build',
] as const;

export type ToolName = (typeof readToolNames)[number] | (typeof changeToolNames)[number];

/** A tool of an external MCP server: the slug of the server and the name of the tool there. */
export type ExternalToolName = `${string}__${string}`;

export const externalToolName = /^[a-z0-9-]{1,32}__[A-Za-z0-9_.-]{1,64}$/;

export const toolNames: readonly ToolName[] = [...readToolNames, ...changeToolNames];

export function changesSomething(name: ToolName): boolean {
  return (changeToolNames as readonly string[]).includes(name);
}
