import { z } from 'zod';
import type { Decision, Denial } from '../../core/authorize.ts';
import type { Scope } from '../../core/scopes.ts';
import type { AgentWorkspace } from '../../features/agents/definition.ts';
import type { McpPolicy } from '../../features/agents/mcp-policy.ts';
import type { ToolRule } from '../../features/agents/mcp-policy.ts';
import type { UploadOffer } from '../../features/agents/mcp-upload-store.ts';
import type { CallStep } from '../../features/agents/session-store.ts';
import type { ExternalToolName, ToolName } from '../../features/agents/tool-names.ts';
import type { CallRoute } from './call-route.ts';

/**
 * A tool of the MCP endpoint as data. It calls routes of the API, so that every rule of a route holds for agents too; there
 * is no second authorization. Its output schema selects what an agent gets: both schemas are closed.
 */
export type ToolContext = {
  readonly call: CallRoute;
  readonly person: { readonly id: string; readonly name: string };
  readonly clientId: string;
  readonly policy: McpPolicy;
  /** The workspace of the definition; null: there is none, and agents reach what the person does. */
  readonly workspace: AgentWorkspace | null;
  /** True: policy, definition and workspace leave a tool that changes something. */
  readonly mayChange: () => boolean;
  /** Whether the routes would accept this scope. */
  readonly may: (scope: Scope) => Decision;
  readonly pause: (ms: number) => Promise<void>;
  /** Gives an address to which the agent may upload files, once. @throws AppError state_conflict */
  readonly offerUpload: (
    offer: Omit<UploadOffer, 'userId' | 'clientId' | 'grantId'>,
  ) => Promise<OfferedUpload>;
  /** The approval of this call. Null: it needed none. */
  readonly approvalId: string | null;
};

export type OfferedUpload = { readonly url: string; readonly token: string; readonly expiresAt: number };

type Described = {
  readonly name: ToolName | ExternalToolName;
  readonly title: string;
  /** Purpose and use, for the language model. */
  readonly description: string;
  /** The scope of the routes that the tool calls. A caller without it does not get the tool. Absent: none. */
  readonly scope?: Scope;
  /** A tool that destroys needs a second call, with the confirmation that the first returned. */
  readonly effect: 'read' | 'change' | 'destroy';
  /** True: a repeated call changes nothing more. */
  readonly isIdempotent?: true;
  /** Arguments whose values are not recorded: contents of files, values of variables. `all`: for external tools. */
  readonly hides?: readonly string[] | 'all';
};

/** What a call changes: the route that reads it, and the fields of its answer that are its version. */
export type Subject = {
  readonly operationId: string;
  readonly params: Readonly<Record<string, string>>;
  readonly fields: readonly string[];
};

export type ToolSpec<I, O> = Described & {
  readonly input: z.ZodType<I>;
  readonly output: z.ZodType<O>;
  /** Absent: it changes nothing that exists. Confirmations and approvals hold while the version stays the same. */
  readonly subject?: (input: I) => Subject | undefined;
  /** Whether the call publishes for everyone: the policy has a separate rule for that. */
  readonly makesPublic?: (input: I, context: ToolContext) => Promise<boolean>;
  run(input: I, context: ToolContext): Promise<O>;
  /** The recorded step, if the answer is not yet the result of the call. */
  readonly stepOf?: (output: O) => CallStep | null;
  /** Id of the site or Environment that the call created or published. */
  readonly objectOf?: (output: O) => string | undefined;
};

/** Extra fields of a tool of an external server. */
export type ExternalTool = {
  /** The rule, after all narrowing. */
  readonly rule: ToolRule;
  /** False: a call is answered with what to do first. */
  readonly isListed: boolean;
  /** The entry in tools/list. */
  readonly descriptor: {
    readonly name: string;
    readonly inputSchema: { readonly type: 'object' };
  };
  /** What an approval depends on besides the arguments. */
  readonly version: readonly unknown[];
};

/** A tool with its types erased. They are checked where it is declared. */
export type Tool = Described & {
  /** Absent for a tool of Postern. The output of an external tool is a complete result. */
  readonly external?: ExternalTool;
  readonly input: z.ZodType;
  readonly output: z.ZodType;
  readonly subject?: (input: unknown) => Subject | undefined;
  readonly makesPublic?: (input: unknown, context: ToolContext) => Promise<boolean>;
  run(input: unknown, context: ToolContext): Promise<unknown>;
  readonly stepOf?: (output: unknown) => CallStep | null;
  readonly objectOf?: (output: unknown) => string | undefined;
};

export function defineTool<I, O>(spec: ToolSpec<I, O>): Tool {
  // Sound because the server parses every input with the schema of this spec before it calls run().
  return spec as unknown as Tool;
}

/** The version of what a call changes. Rejects when the person cannot see it. */
export async function versionOf(tool: Tool, input: unknown, { call }: ToolContext): Promise<unknown[]> {
  if (tool.external !== undefined) return [...tool.external.version];
  const subject = tool.subject?.(input);
  if (subject === undefined) return [];
  const { operationId, params, fields } = subject;
  const { data } = await call<Record<string, unknown>>(operationId, { params });
  return fields.map((field) => data[field] ?? null);
}

/** Rows of one page of a list. The largest row of any list is about 1 KiB, so that a page stays far below 64 KiB. */
const pageRows = 25;

export const cursorInput = {
  cursor: z
    .string()
    .regex(/^[1-9]\d{0,5}$/, 'must be the nextCursor of an earlier answer')
    .optional()
    .describe('nextCursor of the previous answer'),
};

export const nextCursor = z.string().nullable().describe('Null: this was the last page');

/** The query of a list route for a cursor. */
export function pageOf(cursor: string | undefined): Record<string, string> {
  return { page: cursor ?? '1', limit: String(pageRows) };
}

/** Null: the caller has the scope of the tool. */
export function denialOf({ scope }: Pick<Tool, 'scope'>, { may }: Pick<ToolContext, 'may'>): Denial | null {
  return scope === undefined ? null : may(scope).denial;
}
