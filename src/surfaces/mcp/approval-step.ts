import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  inputRequired,
  type InputRequiredResult,
  inputResponse,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { AppError } from '../../core/errors.ts';
import { containsKey } from '../../core/key-shape.ts';
import type { Asked, CallToApprove } from '../../features/agents/approvals.ts';
import { canonicalJson } from '../../features/audit/chain.ts';
import { type Tool, type ToolContext, versionOf } from './tool.ts';

/**
 * The step of a call that the person must approve. A client that can open pages for the person opens the page of the
 * approval and repeats the call. Every other client gives the agent the address.
 */
export type ApprovalStep = {
  readonly use: (call: Omit<CallToApprove, 'grantId'>) => Promise<Asked>;
  /** The page on which the person decides. */
  readonly pageOf: (approvalId: string) => string;
};

export type PersonAtClient = {
  /** The client can open a page for the person, and has not been asked to in this call. */
  readonly opensPages: boolean;
  /** The person agreed to open the page, so an answer may come soon. */
  readonly isAtPage: boolean;
  /** The client can ask the person a question. */
  readonly answersQuestions: boolean;
  /** The person's answer to askToConfirm(); null: none yet. */
  readonly confirmed: { readonly isAllowed: boolean; readonly confirmation: string } | null;
};

const key = 'approval';
const confirmKey = 'confirm';
/** Number of checks: with the pauses, as long as `wait_for_environment` waits. */
const looks = 15;
const pauseMs = 1_000;

export function personAt({
  envelope,
  inputResponses,
  requestState,
}: ServerContext['mcpReq']): PersonAtClient {
  // The library has validated it. Older revisions have no envelope.
  const { elicitation } =
    ((envelope as Record<string, unknown> | undefined)?.[CLIENT_CAPABILITIES_META_KEY] as
      | ClientCapabilities
      | undefined) ?? {};
  const answer = inputResponse(inputResponses, key);
  const confirm = inputResponse(inputResponses, confirmKey);
  const confirmation = requestState<string>();
  return {
    opensPages: elicitation?.url !== undefined && answer.kind === 'missing',
    isAtPage: answer.kind === 'elicit' && answer.action === 'accept',
    // An empty capability means forms.
    answersQuestions:
      elicitation?.form !== undefined || (elicitation !== undefined && elicitation.url === undefined),
    confirmed:
      confirm.kind !== 'elicit'
        ? null
        : {
            isAllowed: confirm.action === 'accept' && confirm.content?.['confirm'] === true,
            confirmation: typeof confirmation === 'string' ? confirmation : '',
          },
  };
}

export function openPage({ title }: Tool, url: string): InputRequiredResult {
  const message = `Your agent waits for your approval: ${title}.`;
  return inputRequired({ inputRequests: { [key]: inputRequired.elicitUrl({ message, url }) } });
}

/** The client returns `confirmation` with the answer of the person, so the answer holds only for this call. */
export function askToConfirm({ title }: Tool, input: unknown, confirmation: string): InputRequiredResult {
  const message = `Your agent wants to: ${title}. Arguments: ${JSON.stringify(input)}`;
  const confirm = { type: 'boolean', title: 'Do it', default: false } as const;
  const requestedSchema = { type: 'object', properties: { confirm }, required: ['confirm'] } as const;
  return inputRequired({
    inputRequests: {
      [confirmKey]: inputRequired.elicit({
        message,
        requestedSchema: { ...requestedSchema, required: [...requestedSchema.required] },
      }),
    },
    requestState: confirmation,
  });
}

/** Uses the approval of this call, or requests one. Waits a moment for a person who has the page open. @throws AppError */
export async function askPerson(
  tool: Tool,
  input: Readonly<Record<string, unknown>>,
  { context, approvals }: { readonly context: ToolContext; readonly approvals: ApprovalStep },
  { isAtPage }: PersonAtClient,
): Promise<Asked> {
  // The route also refuses the call, but here a key would be stored and shown first.
  if (containsKey(JSON.stringify(input)))
    throw new AppError('invalid_body', { message: 'The arguments must not contain an API key.' });
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
