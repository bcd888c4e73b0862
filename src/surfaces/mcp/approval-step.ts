import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  inputRequired,
  type InputRequiredResult,
  inputResponse,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { AgentApprovals, Asked } from '../../features/agents/approvals.ts';
import { canonicalJson } from '../../features/audit/chain.ts';
import { type Tool, type ToolContext, versionOf } from './tool.ts';

/**
 * The step of a call that the person must approve. A client that can open pages for the person is asked to open that of the
 * approval, and repeats the call by itself; every other client tells the agent the address.
 */
export type ApprovalStep = {
  readonly use: AgentApprovals['use'];
  /** The page on which the person decides. */
  readonly pageOf: (approvalId: string) => string;
};

export type PersonAtClient = {
  /** The client can open a page for the person, and was not asked to in this call. */
  readonly opensPages: boolean;
  /** The person agreed to open the page, so that an answer may come soon. */
  readonly isAtPage: boolean;
};

const key = 'approval';
/** As long as `wait_for_environment` waits. */
const looks = 15;
const pauseMs = 1_000;

export function personAt({ envelope, inputResponses }: ServerContext['mcpReq']): PersonAtClient {
  // The library has validated it. Older revisions have no envelope.
  const { elicitation } =
    ((envelope as Record<string, unknown> | undefined)?.[CLIENT_CAPABILITIES_META_KEY] as
      | ClientCapabilities
      | undefined) ?? {};
  const answer = inputResponse(inputResponses, key);
  return {
    opensPages: elicitation?.url !== undefined && answer.kind === 'missing',
    isAtPage: answer.kind === 'elicit' && answer.action === 'accept',
  };
}

export function openPage({ title }: Tool, url: string): InputRequiredResult {
  const message = `Your agent waits for your approval: ${title}.`;
  return inputRequired({ inputRequests: { [key]: inputRequired.elicitUrl({ message, url }) } });
}

/** Uses the approval of this call, or requests one. Waits a moment for a person who is at the page. */
export async function askPerson(
  tool: Tool,
  input: Readonly<Record<string, unknown>>,
  { context, approvals }: { readonly context: ToolContext; readonly approvals: ApprovalStep },
  { isAtPage }: PersonAtClient,
): Promise<Asked> {
  const ask = async () =>
    await approvals.use({
      userId: context.person.id,
      clientId: context.clientId,
      tool: tool.name,
      arguments: input,
      what: canonicalJson([input, await versionOf(tool, input, context)]),
    });
  let asked = await ask();
  for (let count = 1; isAtPage && count < looks && asked.kind === 'waiting'; count += 1) {
    await context.pause(pauseMs);
    asked = await ask();
  }
  return asked;
}
