import {
  type CallToolResult,
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { inputWords } from '../../platform/input-words.ts';
import { version } from '../../platform/version.ts';
import type { Tool, ToolContext } from './tool.ts';

/** The revisions of the protocol that the endpoint speaks. The library counts the older ones apart. */
export const mcpRevisions: readonly string[] = ['2026-07-28', ...SUPPORTED_PROTOCOL_VERSIONS];

/** One server for each request, so that no answer can reach another client. */
export type ToolServerDeps = {
  readonly tools: readonly Tool[];
  readonly context: ToolContext;
  /** Told what is no refusal: the answer is a bare `internal_error`. */
  readonly onFailure: (error: unknown, tool: string) => void;
};

export function toolServer({ tools, context, onFailure }: ToolServerDeps): McpServer {
  const product = new McpServer(
    { name: 'postern', title: 'Postern', version },
    { capabilities: { tools: {} } },
  );
  const { server } = product;
  server.setRequestHandler('tools/list', () => ({ tools: tools.map(describe) }));
  server.setRequestHandler('tools/call', async ({ params }) => {
    const tool = tools.find(({ name }) => name === params.name);
    if (tool === undefined)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no such tool. Read tools/list.');
    try {
      return toResult(await run(tool, params.arguments ?? {}, context));
    } catch (error) {
      if (!(error instanceof AppError)) onFailure(error, tool.name);
      return toRefusal(error instanceof AppError ? error : new AppError('internal_error'));
    }
  });
  return product;
}

async function run(tool: Tool, sent: unknown, context: ToolContext): Promise<Record<string, unknown>> {
  const input = tool.input.safeParse(sent, { error: inputWords });
  if (!input.success) throw invalidArguments(input.error);
  const output = await tool.run(input.data, context);
  // The schema is closed: what it does not name, such as a new field of a route, never reaches an agent.
  return tool.output.parse(output) as Record<string, unknown>;
}

function invalidArguments({ issues }: z.ZodError): AppError {
  const fields = issues.slice(0, 20).map(({ path, message, ...issue }) => ({
    field: [...path, ...('keys' in issue ? [issue.keys[0] ?? ''] : [])].map(String).join('.').slice(0, 100),
    problem: message,
  }));
  return new AppError('invalid_body', {
    message: `${fields[0]?.field}: ${fields[0]?.problem}`,
    hint: 'Compare the arguments with the input schema of the tool in tools/list.',
    details: { fields },
  });
}

function toResult(output: Record<string, unknown>): CallToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(output) }], structuredContent: output };
}

function toRefusal({ code, message, hint, details }: AppError): CallToolResult {
  const error = { code, message, hint, ...(details === undefined ? {} : { details }) };
  return { content: [{ type: 'text', text: JSON.stringify({ error }) }], isError: true };
}

const described = new WeakMap<Tool, ReturnType<typeof descriptorOf>>();

/** The schemas of a tool never change, so they are converted once. */
function describe(tool: Tool) {
  const known = described.get(tool) ?? descriptorOf(tool);
  described.set(tool, known);
  return known;
}

export function descriptorOf({ name, title, description, input, output }: Tool) {
  return {
    name,
    title,
    description,
    inputSchema: schemaOf(input, 'input'),
    outputSchema: schemaOf(output, 'output'),
    annotations: { readOnlyHint: true, openWorldHint: false },
  };
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output') {
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io });
  // Every tool takes and returns an object.
  return json as { type: 'object' };
}
