/**
 * Messages of the protocol as clients send and accept them. The library demands that a client accepts both forms of an
 * answer, and refuses null. Many clients accept one form, and send null for what they leave out. This module reads what
 * they send and answers in a form that they accept. It also turns the library's dumps of refused fields into readable messages.
 */

/** `both`: the library chooses. */
export type AnswerForm = 'both' | 'json' | 'stream';

const streamType = 'text/event-stream';
const jsonType = 'application/json';

/** Null: the client accepts no form of an answer. */
export function acceptedForm(accept: string | undefined): AnswerForm | null {
  const ranges = (accept?.trim() || '*/*').split(',').flatMap((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    return parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter)) ? [] : [type];
  });
  const acceptsJson = ranges.some((range) => [jsonType, 'application/*', '*/*'].includes(range));
  const acceptsStream = ranges.some((range) => [streamType, 'text/*'].includes(range));
  if (!acceptsStream) return acceptsJson ? 'json' : null;
  return acceptsJson ? 'both' : 'stream';
}

/** The header that the library demands, in place of the client's. */
export const bothForms = `${jsonType}, ${streamType}`;

/** Undefined: the body is not JSON; the library answers that. */
export function messageIn(body: unknown): unknown {
  if (!Buffer.isBuffer(body)) return undefined;
  try {
    const message: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    return Array.isArray(message) ? message.map(withoutNulls) : withoutNulls(message);
  } catch {
    return undefined;
  }
}

function withoutNulls(message: unknown): unknown {
  if (!isObject(message) || !('params' in message)) return message;
  const { params, ...others } = message;
  if (params === null) return others;
  if (!isObject(params)) return message;
  const named = Object.entries(params).filter(([, value]) => value !== null);
  return { ...others, params: Object.fromEntries(named) };
}

export type Answer = { readonly type: string | null; readonly text: string };

export function answerIn(form: AnswerForm, { type, text }: Answer, isBatch: boolean): Answer {
  const isStream = type?.startsWith(streamType) === true;
  if (!isStream && type?.startsWith(jsonType) !== true) return { type, text };
  const messages = (isStream ? eventsIn(text) : [text]).map(inWords);
  const asStream = form === 'both' ? isStream : form === 'stream';
  if (asStream)
    return { type: streamType, text: messages.map((data) => `event: message\ndata: ${data}\n\n`).join('') };
  const json = isStream && isBatch ? `[${messages.join(',')}]` : messages.join('');
  return { type: jsonType, text: json };
}

/** The library writes each message on one line. */
function eventsIn(stream: string): string[] {
  return stream.split('\n').flatMap((line) => (line.startsWith('data: ') ? [line.slice(6)] : []));
}

/** Matches an error of the protocol. Texts of tools do not match, because their quotes are escaped. */
const protocolError = /"error":\{"code":-326\d\d,/;

function inWords(text: string): string {
  if (!protocolError.test(text)) return text;
  // Written by the library a moment ago.
  const message = JSON.parse(text) as { error?: { code: number; message: string } };
  const dump = message.error && issuesIn(message.error.message);
  if (dump === undefined) return text;
  const told = dump.slice(0, 5).map(({ path, message: problem }) => {
    const field = path.join('.').slice(0, 100);
    return `${field === '' ? 'the message' : field}: ${problem.replace(/^Invalid input: /, '')}`;
  });
  return JSON.stringify({
    ...message,
    // -32602: the client's fault (JSON-RPC 2.0, section 5.1).
    error: { ...message.error, code: -32_602, message: `The request is not valid. ${told.join('; ')}.` },
  });
}

type Issue = { readonly path: readonly (string | number)[]; readonly message: string };

/** The refused fields that a message of the library ends with. */
function issuesIn(message: string): readonly Issue[] | undefined {
  const start = message.indexOf('[\n');
  if (start === -1) return undefined;
  try {
    const issues: unknown = JSON.parse(message.slice(start));
    return Array.isArray(issues) && issues.length > 0 && issues.every(isIssue) ? issues : undefined;
  } catch {
    return undefined;
  }
}

function isIssue(value: unknown): value is Issue {
  return isObject(value) && Array.isArray(value['path']) && typeof value['message'] === 'string';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
