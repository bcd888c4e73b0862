import {
  Client,
  type ClientOptions,
  type ContentBlock,
  extractWWWAuthenticateParams,
  ProtocolError,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { AppError } from '../../core/errors.ts';
import type { Fetch } from '../../platform/fetch.ts';
import { RefusedAddress } from '../../platform/guarded-fetch.ts';
import { version } from '../../platform/version.ts';
import type { ToolText } from './tool-text.ts';

/**
 * A client for the tools of an external MCP server, with one session for each task. It sends the credential only to the
 * origin of the server's URL. Each task has a time limit.
 */
export type ExternalClient = {
  /** All tools that the server lists, within limits. @throws AppError external_server_unavailable, connection_broken */
  list(target: ExternalTarget): Promise<ToolText[]>;
  /** @param tool the text that an administrator accepted. @throws AppError as list() */
  call(
    target: ExternalTarget,
    tool: ToolText,
    input: Readonly<Record<string, unknown>>,
  ): Promise<ExternalAnswer>;
};

export type ExternalTarget = {
  readonly name: string;
  readonly url: string;
  /** The value of the Authorization header. Null: none is sent. */
  readonly authorization: string | null;
};

export type ExternalAnswer = {
  readonly isError: boolean;
  readonly content: readonly AnswerPart[];
  readonly structuredContent: Readonly<Record<string, unknown>> | null;
};
type AnswerPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string };

const maxTools = 1_000;
const maxListPages = 20;
/** Maximum size of all answers of one session: the SDK holds every page of a list until the last one. */
const maxSessionBytes = 4_194_304;
/** Maximum characters of all tools together, as JSON. A number can be longer in JSON than the server sent it. */
const maxListLength = 4_194_304;
/** Far deeper than real schemas, and shallow enough for every reader. */
const maxSchemaDepth = 64;
const maxAnswerBytes = 65_536;

export function createExternalClient({
  fetch,
  listMs = 8_000,
  callMs = 30_000,
}: {
  readonly fetch: Fetch;
  /** Milliseconds after which a server without an answer counts as unavailable. */
  readonly listMs?: number;
  readonly callMs?: number;
}): ExternalClient {
  async function during<T>(
    target: ExternalTarget,
    ms: number,
    task: (client: Client, options: TaskOptions) => Promise<T>,
  ): Promise<T> {
    const ending = AbortSignal.timeout(ms);
    const seen: Seen = {
      status: null,
      lacksScope: false,
      refused: null,
      bytes: 0,
      tooMuch: new AbortController(),
    };
    const transport = new StreamableHTTPClientTransport(new URL(target.url), {
      fetch: fetchFor(target, { fetch, ending, seen }),
      reconnectionOptions: {
        maxRetries: 0,
        initialReconnectionDelay: ms,
        maxReconnectionDelay: ms,
        reconnectionDelayGrowFactor: 1,
      },
    });
    const client = new Client(
      { name: 'postern', title: 'Postern', version },
      {
        versionNegotiation: { mode: 'auto' },
        // Only tools: the server cannot ask the person or a language model for anything.
        capabilities: {},
        inputRequired: { autoFulfill: false },
        listMaxPages: maxListPages,
        jsonSchemaValidator: acceptsEverything,
      },
    );
    // The signal is needed: without it, the SDK would wait for the rest of a failed event stream.
    const options = { timeout: ms, maxTotalTimeout: ms, signal: seen.tooMuch.signal };
    try {
      await client.connect(transport, options);
      return await task(client, options);
    } catch (error) {
      if (error instanceof AppError) throw error;
      throw failureOf(target, error, seen);
    } finally {
      // The caller does not wait until the server ends the session; that request has the usual time limit.
      const ended = transport.terminateSession().catch(() => undefined);
      void ended.then(() => client.close()).catch(() => undefined);
    }
  }

  return {
    list: (target) =>
      during(target, listMs, async (client, options) => {
        const { tools } = await client.listTools(undefined, options);
        return boundedList(target, tools.map(toText));
      }),
    call: (target, { name, inputSchema }, input) =>
      during(target, callMs, async (client, options) => {
        // With a definition the SDK never asks the server for one during the call. Without an output schema it compiles none.
        const toolDefinition = { name, inputSchema: { ...inputSchema, type: 'object' as const } };
        try {
          const result = await client.callTool(
            { name, arguments: { ...input } },
            { ...options, toolDefinition },
          );
          return bounded(target, {
            isError: result.isError === true,
            content: result.content.map(toPart),
            // The SDK parsed it as an object.
            structuredContent: (result.structuredContent as Record<string, unknown> | undefined) ?? null,
          });
        } catch (error) {
          // The server understood the call and refused it: that is its answer.
          if (!(error instanceof ProtocolError)) throw error;
          const text = error.message.slice(0, 4_000);
          return { isError: true, content: [{ type: 'text', text }], structuredContent: null };
        }
      }),
  };
}

/** A schema of an external server is never compiled here: its patterns could block this process forever. */
const acceptsEverything: NonNullable<ClientOptions['jsonSchemaValidator']> = {
  // T is what the caller expects; nothing here depends on it.
  getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }),
};

type TaskOptions = {
  readonly timeout: number;
  readonly maxTotalTimeout: number;
  readonly signal: AbortSignal;
};

type Seen = {
  status: number | null;
  /** The server refused the last request for want of a scope (RFC 6750 section 3.1). */
  lacksScope: boolean;
  refused: RefusedAddress | null;
  bytes: number;
  /** Aborted: the answers have more than `maxSessionBytes` together. */
  readonly tooMuch: AbortController;
};

function fetchFor(
  { url, authorization }: ExternalTarget,
  { fetch, ending, seen }: { fetch: Fetch; ending: AbortSignal; seen: Seen },
) {
  const { origin } = new URL(url);
  return async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    const { method = 'GET', signal } = init;
    // A tool call needs no messages outside of its answer.
    if (method === 'GET') return new Response(null, { status: 405 });
    if (new URL(input).origin !== origin) throw new Error('The request leaves the origin of the server.');
    const headers = Object.fromEntries(new Headers(init.headers));
    try {
      const answer = await fetch(String(input), {
        method,
        headers: { ...headers, ...(authorization === null ? {} : { authorization }) },
        body: init.body,
        signal: signal ? AbortSignal.any([signal, ending]) : ending,
      });
      seen.status = answer.ok ? null : answer.status;
      seen.lacksScope =
        answer.status === 403 && extractWWWAuthenticateParams(answer).error === 'insufficient_scope';
      return counted(answer, seen);
    } catch (error) {
      if (error instanceof RefusedAddress) seen.refused = error;
      throw error;
    }
  };
}

function counted(answer: Response, seen: Seen): Response {
  if (answer.body === null) return answer;
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(piece, controller) {
      seen.bytes += piece.length;
      if (seen.bytes <= maxSessionBytes) return controller.enqueue(piece);
      seen.tooMuch.abort();
      throw new Error(`The answers have more than ${maxSessionBytes} bytes together.`);
    },
  });
  return new Response(answer.body.pipeThrough(counter), answer);
}

function failureOf(
  { name }: ExternalTarget,
  cause: unknown,
  { status, lacksScope, refused, tooMuch }: Seen,
): AppError {
  if (tooMuch.signal.aborted)
    return new AppError('external_server_unavailable', {
      message: `${name} sent more than ${maxSessionBytes} bytes in one session, which is the maximum.`,
      hint: 'Ask the operator of the server to list less.',
      cause,
    });
  if (status === 401)
    return new AppError('connection_broken', {
      message: `${name} does not accept the account of the person.`,
    });
  // Omits the name of the scope: an agent reads this message, and the server chose the name.
  if (lacksScope)
    return new AppError('external_server_unavailable', {
      message: `${name} refused the request: the account of the person lacks a scope there.`,
      hint: `Postern asks for the scopes that ${name} names when people sign in. Ask its operator to name this one as well, then connect the account again.`,
      cause,
    });
  if (refused?.kind === 'private')
    return new AppError('external_server_unavailable', {
      message: `${name} is in a private network, which Postern does not reach.`,
      hint: 'An administrator allows the host in OUTBOUND_ALLOW_PRIVATE, or corrects the URL of the server.',
      cause,
    });
  // What servers with the older transport answer to the first message.
  if (status === 404 || status === 405 || status === 406)
    return new AppError('external_server_unavailable', {
      message: `${name} answered with status ${status}. Postern speaks Streamable HTTP only, and not the older HTTP+SSE.`,
      hint: 'An administrator enters the Streamable HTTP address of the server. Its operator knows whether there is one.',
      cause,
    });
  const answered =
    status === null ? 'did not give a usable answer in time' : `answered with status ${status}`;
  return new AppError('external_server_unavailable', { message: `${name} ${answered}.`, cause });
}

/** @throws AppError external_server_unavailable */
function boundedList({ name }: ExternalTarget, texts: readonly ToolText[]): ToolText[] {
  const refuse = (problem: string) =>
    new AppError('external_server_unavailable', {
      message: `${name} ${problem}.`,
      hint: 'Ask the operator of the server to list less.',
    });
  if (texts.length > maxTools) throw refuse(`lists ${texts.length} tools; Postern reads at most ${maxTools}`);
  // Checked before any recursion into the schema.
  if (texts.some((text) => isDeeperThan(text, maxSchemaDepth)))
    throw refuse(`lists a schema with more than ${maxSchemaDepth} levels`);
  let length = 0;
  for (const text of texts) length += JSON.stringify(text).length;
  if (length > maxListLength)
    throw refuse(`lists tools with ${length} characters; Postern reads at most ${maxListLength}`);
  return [...texts];
}

function isDeeperThan(value: unknown, levels: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= levels; depth += 1) {
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []));
    if (level.length === 0) return false;
  }
  return true;
}

/** @throws AppError external_server_unavailable */
function bounded({ name }: ExternalTarget, answer: ExternalAnswer): ExternalAnswer {
  const bytes = Buffer.byteLength(JSON.stringify(answer));
  if (bytes <= maxAnswerBytes) return answer;
  throw new AppError('external_server_unavailable', {
    message: `The answer of ${name} has ${bytes} bytes; at most ${maxAnswerBytes} are passed on.`,
    hint: 'Ask for less, such as one page of a list. The call may have changed something.',
  });
}

type Listed = Awaited<ReturnType<Client['listTools']>>['tools'][number];

function toText({ name, title, description, inputSchema, outputSchema, annotations }: Listed): ToolText {
  return {
    name,
    title: title ?? null,
    description: description ?? '',
    inputSchema,
    outputSchema: outputSchema ?? null,
    annotations: annotations ?? null,
  };
}

function toPart(part: ContentBlock): AnswerPart {
  if (part.type === 'text') return { type: 'text', text: part.text };
  if (part.type === 'image' || part.type === 'audio')
    return { type: part.type, data: part.data, mimeType: part.mimeType };
  return { type: 'text', text: '(Postern passes on no resources of external servers.)' };
}
