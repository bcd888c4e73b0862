import {
  type CallToolResult,
  type InputRequiredResult,
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { AppError, type ErrorCode } from '../../core/errors.ts';
import { maskKeys } from '../../core/key-shape.ts';
import { isUsable, type McpPolicy, stricterOf, type ToolRule } from '../../features/agents/mcp-policy.ts';
import { hiddenValue } from '../../features/agents/hidden-value.ts';
import type { CallStep } from '../../features/agents/session-store.ts';
import { type ToolName, toolNames } from '../../features/agents/tool-names.ts';
import { inputWords } from '../../platform/input-words.ts';
import { version } from '../../platform/version.ts';
import {
  type ApprovalStep,
  askPerson,
  askToConfirm,
  openPage,
  type PersonAtClient,
  personAt,
} from './approval-step.ts';
import type { Confirmations } from './confirmations.ts';
import { listedPrompts, readPrompt } from './prompts.ts';
import { listedResources, readResource } from './resources.ts';
import { denialOf, type Tool, type ToolContext, versionOf } from './tool.ts';

/** The protocol revisions of the endpoint. The library lists the older ones separately. */
export const mcpRevisions: readonly string[] = ['2026-07-28', ...SUPPORTED_PROTOCOL_VERSIONS];

/** One server for each request, so that no answer can reach another client. */
export type ToolServerDeps = {
  readonly tools: readonly Tool[];
  /** Tools of external servers for this person and client. */
  readonly external: () => Promise<readonly Tool[]>;
  /** Called with each tools/list, which does not wait for it. */
  readonly lookForChanges: () => void;
  readonly context: ToolContext;
  readonly confirmations: Confirmations;
  readonly approvals: ApprovalStep;
  /** Records a call; if recording fails, the call is answered with its error. */
  readonly record: (call: ToolCall) => Promise<void>;
  /** Receives unexpected errors, which are answered with a bare `internal_error`. */
  readonly onFailure: (error: unknown, tool: string) => void;
};

export type ToolCall = {
  readonly tool: string;
  readonly hasChanged: boolean;
  /** Null: the tool answered. */
  readonly code: ErrorCode | null;
  /** The approval that the call requested or used. */
  readonly approvalId: string | null;
  readonly step: CallStep | null;
  /** The site or Environment that the call created or published. */
  readonly objectId: string | null;
  /** The arguments. The values that the tool hides, such as contents of files, are replaced. */
  readonly arguments: Readonly<Record<string, unknown>>;
};

export function toolServer(deps: ToolServerDeps): McpServer {
  const { tools, context, record } = deps;
  const { instructions } = context.policy;
  const product = new McpServer(
    { name: 'postern', title: 'Postern', version },
    {
      // The server sends no notice of changed lists, so it does not claim to.
      capabilities: {
        tools: { listChanged: false },
        resources: { listChanged: false },
        prompts: { listChanged: false },
      },
      ...(instructions === '' ? {} : { instructions }),
    },
  );
  const { server } = product;
  server.setRequestHandler('tools/list', async () => {
    const all = [...tools, ...(await deps.external())];
    const listed = all.filter(
      (tool) =>
        ownRule(tool, context.policy) !== 'hidden' &&
        tool.external?.isListed !== false &&
        denialOf(tool, context) === null,
    );
    deps.lookForChanges();
    return { tools: listed.map(describe) };
  });
  server.setRequestHandler('resources/list', () => ({ resources: listedResources }));
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }));
  server.setRequestHandler(
    'resources/read',
    async ({ params }) => await readResource(params.uri, context, deps.onFailure),
  );
  server.setRequestHandler('prompts/list', () => ({ prompts: listedPrompts(instructions) }));
  server.setRequestHandler('prompts/get', ({ params }) => readPrompt(params.name, instructions));
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    const hasName = ({ name }: Tool) => name === params.name;
    const tool = tools.find(hasName) ?? (await deps.external()).find(hasName);
    if (tool === undefined)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no such tool. Read tools/list.');
    const sent = params.arguments ?? {};
    const { result, code, hasChanged, approvalId, step, objectId } = await outcomeOf(
      tool,
      sent,
      deps,
      personAt(mcpReq),
    );
    try {
      const kept = recordable(tool, sent, code);
      await record({ tool: tool.name, hasChanged, code, approvalId, step, objectId, arguments: kept });
    } catch (error) {
      deps.onFailure(error, tool.name);
      return toRefusal(new AppError('store_unavailable'));
    }
    return result;
  });
  return product;
}

type Outcome = {
  readonly result: CallToolResult | InputRequiredResult;
  readonly code: ErrorCode | null;
  readonly hasChanged: boolean;
  readonly approvalId: string | null;
  readonly step: CallStep | null;
  readonly objectId: string | null;
};

async function outcomeOf(
  tool: Tool,
  sent: Record<string, unknown>,
  deps: ToolServerDeps,
  person: PersonAtClient,
): Promise<Outcome> {
  const { policy } = deps.context;
  let approvalId: string | null = null;
  try {
    if (ownRule(tool, policy) === 'hidden') throw new AppError('tool_hidden');
    const denial = denialOf(tool, deps.context);
    // Checked first, so that the person is not asked to approve a call that its route would refuse.
    if (denial !== null) throw new AppError(denial.code, denial);
    if ((await ruleOf(tool, sent, deps.context)) === 'ask') {
      const asked = await askPerson(tool, parsedArguments(tool, sent), deps, person);
      approvalId = asked.id;
      if (asked.kind === 'refused') throw new AppError('approval_refused');
      if (asked.kind === 'waiting') {
        const url = deps.approvals.pageOf(asked.id);
        if (!person.opensPages) throw waiting(url);
        return {
          result: openPage(tool, url),
          code: 'approval_required',
          hasChanged: false,
          approvalId,
          step: null,
          objectId: null,
        };
      }
    }
    const outcome =
      tool.effect === 'destroy'
        ? await destroy(tool, sent, deps, { isApproved: approvalId !== null, person })
        : await run(tool, sent, { ...deps.context, approvalId });
    if ('question' in outcome)
      return {
        result: outcome.question,
        code: null,
        hasChanged: false,
        approvalId,
        step: 'confirmation_asked',
        objectId: null,
      };
    const { answer, hasChanged, step = tool.stepOf?.(answer) ?? null } = outcome;
    const result =
      tool.external === undefined
        ? { content: [{ type: 'text' as const, text: JSON.stringify(answer) }], structuredContent: answer }
        : // Made by external-tools.ts from an answer that the SDK parsed.
          (answer as CallToolResult);
    const objectId = tool.objectOf?.(answer) ?? null;
    return { result, code: null, hasChanged, approvalId, step, objectId };
  } catch (error) {
    const isRefusal = error instanceof AppError;
    if (!isRefusal) deps.onFailure(error, tool.name);
    const refusal = isRefusal ? error : new AppError('internal_error');
    return {
      result: toRefusal(refusal),
      code: refusal.code,
      hasChanged: false,
      approvalId,
      step: null,
      objectId: null,
    };
  }
}

export function ownRule({ name, external }: Pick<Tool, 'name' | 'external'>, policy: McpPolicy): ToolRule {
  if (external !== undefined) return external.rule;
  const own = toolNames.find((one): one is ToolName => one === name);
  return own !== undefined && isUsable(policy, own) ? policy.tools[own] : 'hidden';
}

async function ruleOf(tool: Tool, sent: Record<string, unknown>, context: ToolContext): Promise<ToolRule> {
  const makesPublic = await tool.makesPublic?.(parsedArguments(tool, sent), context);
  return ruleNow(context.policy, tool, makesPublic === true);
}

/** The rule of the tool, or the rule of publishing for everyone if it is stricter. @throws AppError tool_hidden */
export function ruleNow(
  policy: McpPolicy,
  tool: Pick<Tool, 'name' | 'external'>,
  makesPublic: boolean,
): ToolRule {
  const rule = ownRule(tool, policy);
  if (rule === 'hidden') throw new AppError('tool_hidden');
  const { publicSites } = policy;
  if (!makesPublic) return rule;
  if (publicSites === 'hidden')
    throw new AppError('tool_hidden', {
      message: 'An administrator does not let agents publish for everyone.',
      hint: 'Publish it as private, or ask the person to make it public.',
    });
  return stricterOf(rule, publicSites);
}

function waiting(url: string): AppError {
  return new AppError('approval_required', {
    hint: `Ask the person to open ${url}. Then make the same call again, within ten minutes.`,
    details: { url },
  });
}

type Answered = {
  readonly answer: Record<string, unknown>;
  readonly hasChanged: boolean;
  readonly step?: CallStep;
};

async function run(tool: Tool, sent: Record<string, unknown>, context: ToolContext): Promise<Answered> {
  const output = await tool.run(parsed(tool.input, sent), context);
  // The schema is closed: a field that it does not name, such as a new one of a route, never reaches an agent.
  const answer = tool.output.parse(output) as Record<string, unknown>;
  return { answer, hasChanged: tool.effect !== 'read' };
}

/**
 * The first call changes nothing. A client asks the person if it can; any other gets a confirmation, and a second call
 * with it destroys. An approved call needs neither.
 */
async function destroy(
  tool: Tool,
  sent: Record<string, unknown>,
  deps: ToolServerDeps,
  { isApproved, person }: { readonly isApproved: boolean; readonly person: PersonAtClient },
): Promise<Answered | { readonly question: InputRequiredResult }> {
  const { context, confirmations } = deps;
  const { confirmation, ...own } = sent;
  if (person.confirmed?.isAllowed === false) throw new AppError('approval_refused');
  const given = person.confirmed?.confirmation ?? parsed(z.string().max(200).optional(), confirmation);
  if (isApproved) return await destroyed(tool, own, context);
  const input = parsed(tool.input, own);
  const version = await versionOf(tool, input, context);
  const what = JSON.stringify([context.person.id, context.clientId, tool.name, input, version]);
  if (given === undefined && person.answersQuestions)
    return { question: askToConfirm(tool, input, confirmations.issue(what)) };
  if (given === undefined) {
    const message =
      'Nothing was changed. Tell the person what will be destroyed; then call again with confirmation.';
    return {
      answer: { done: false, message, confirmation: confirmations.issue(what), result: null },
      hasChanged: false,
      step: 'confirmation_asked',
    };
  }
  if (!confirmations.isGood(what, given))
    throw new AppError('state_conflict', {
      message: 'The confirmation is not valid: it is older than five minutes, or something changed since.',
      hint: 'Call the tool without confirmation, and read what it would destroy.',
    });
  return await destroyed(tool, own, context);
}

async function destroyed(tool: Tool, own: Record<string, unknown>, context: ToolContext): Promise<Answered> {
  const { answer } = await run(tool, own, context);
  return { answer: { done: true, message: 'Done.', confirmation: null, result: answer }, hasChanged: true };
}

/** Removes the confirmation, which is not an argument of the tool itself. */
function parsedArguments(tool: Tool, sent: Record<string, unknown>): Record<string, unknown> {
  const { confirmation: _, ...own } = sent;
  // Every tool takes an object.
  return parsed(tool.input, tool.effect === 'destroy' ? own : sent) as Record<string, unknown>;
}

function parsed<T>(schema: z.ZodType<T>, sent: unknown): T {
  const input = schema.safeParse(withoutNulls(schema, sent), { error: inputWords });
  if (!input.success) throw invalidArguments(input.error);
  return input.data;
}

/** Many clients send null for an argument that they leave out. A field that knows null keeps it. */
function withoutNulls(schema: z.ZodType, sent: unknown): unknown {
  if (schema instanceof z.ZodOptional) return withoutNulls(schema.unwrap() as z.ZodType, sent);
  if (schema instanceof z.ZodArray && Array.isArray(sent))
    return sent.map((entry) => withoutNulls(schema.element as z.ZodType, entry));
  if (!(schema instanceof z.ZodObject) || typeof sent !== 'object' || sent === null || Array.isArray(sent))
    return sent;
  const fields = schema.shape as Readonly<Record<string, z.ZodType>>;
  return Object.fromEntries(
    Object.entries(sent).flatMap(([name, value]: [string, unknown]) => {
      const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
      if (field === undefined) return [[name, value]];
      const isLeftOut =
        value === null && field.safeParse(undefined).success && !field.safeParse(null).success;
      return isLeftOut ? [] : [[name, withoutNulls(field, value)]];
    }),
  );
}

function invalidArguments({ issues }: z.ZodError): AppError {
  const fields = issues.slice(0, 20).map(({ path, message, ...issue }) => ({
    field: [...path, ...('keys' in issue ? [issue.keys[0] ?? ''] : [])].map(String).join('.').slice(0, 100),
    problem: message,
  }));
  return new AppError('invalid_body', {
    message: `${fields[0]?.field || 'The arguments'}: ${fields[0]?.problem}`,
    hint: 'Compare the arguments with the input schema of the tool in tools/list.',
    details: { fields },
  });
}

function toRefusal({ code, message, hint, details }: AppError): CallToolResult {
  const error = { code, message, hint, ...(details === undefined ? {} : { details }) };
  return { content: [{ type: 'text', text: JSON.stringify({ error }) }], isError: true };
}

const maxRecorded = 4_096;

/** The recorded arguments. For a call that breaks its tool's schema, and for a large one, only the size. */
function recordable(
  { input, hides = [] }: Tool,
  sent: Record<string, unknown>,
  code: ErrorCode | null,
): Record<string, unknown> {
  const { confirmation, ...own } = sent;
  const named = withoutNulls(input, own);
  if (code === 'invalid_body' || !input.safeParse(named).success) return { arguments: hiddenValue(sent) };
  // Every tool takes an object.
  const kept = Object.entries(named as Record<string, unknown>).map(([name, value]) => [
    hides === 'all' ? maskKeys(name.replaceAll('\0', '').toWellFormed()) : name,
    hides === 'all' || hides.includes(name) ? hiddenValue(value) : value,
  ]);
  const text = JSON.stringify(Object.fromEntries(kept), (_name, value: unknown) =>
    // PostgreSQL stores neither NUL nor half a surrogate pair, and no table may contain a key (matrix KF-03).
    typeof value === 'string' ? maskKeys(value.replaceAll('\0', '').toWellFormed()) : value,
  );
  if (text.length > maxRecorded) return { arguments: hiddenValue(sent) };
  const recorded = JSON.parse(text) as Record<string, unknown>;
  return confirmation === undefined ? recorded : { ...recorded, confirmation: hiddenValue(confirmation) };
}

const described = new WeakMap<Tool, ReturnType<typeof descriptorOf>>();

/** The schemas of a tool never change, so they are converted once. */
function describe(tool: Tool) {
  if (tool.external !== undefined) return tool.external.descriptor;
  const known = described.get(tool) ?? descriptorOf(tool);
  described.set(tool, known);
  return known;
}

export function descriptorOf(tool: Tool) {
  const { name, title, description, effect } = tool;
  const isDestructive = effect === 'destroy';
  return {
    name,
    title,
    description,
    inputSchema: schemaOf(isDestructive ? confirmable(tool.input) : tool.input, 'input'),
    outputSchema: schemaOf(isDestructive ? confirmed(tool.output) : tool.output, 'output'),
    annotations: {
      readOnlyHint: effect === 'read',
      ...(effect === 'read'
        ? {}
        : { destructiveHint: isDestructive, idempotentHint: tool.isIdempotent ?? false }),
      openWorldHint: false,
    },
  };
}

function confirmable(input: z.ZodType): z.ZodType {
  if (!(input instanceof z.ZodObject)) throw new Error('The arguments of a tool are an object.');
  return input.extend({
    confirmation: z
      .string()
      .optional()
      .describe('The confirmation of the first call; without it, nothing is changed'),
  });
}

function confirmed(output: z.ZodType): z.ZodType {
  return z.strictObject({
    done: z.boolean().describe('False: nothing was changed yet'),
    message: z.string(),
    confirmation: z.string().nullable().describe('For the second call, within five minutes'),
    result: output.nullable(),
  });
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output') {
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io });
  // Every tool takes and returns an object.
  return json as { type: 'object' };
}
