import { readFile } from 'node:fs/promises';
import { isConfirmed } from '../print/confirm.ts';
import { declined, wrongUsage } from '../core/failure.ts';
import { followLog } from './follow.ts';
import { forPeople } from '../print/for-people.ts';
import type { Io } from '../core/io.ts';
import type { Result } from '../print/output.ts';
import { type ApiRequest, requestOf } from '../http/request.ts';
import { type Answer, type Pagination, send, type Session } from '../http/send.ts';
import { notSignedIn, openSession, type SessionOptions } from '../http/session.ts';
import type { Verb, Verbs } from '../core/verb.ts';
import { wrappedList } from '../print/wrapped-list.ts';

/** The options of every verb that sends a request, without those of its route. */
type VerbOptions = SessionOptions & {
  /** Also true, which the parser sets for a verb without it. */
  readonly input?: string | boolean;
  readonly file?: string;
  readonly ifMatch?: string;
  readonly paginate?: boolean;
  readonly follow?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly quiet?: boolean;
};

/** A generated verb. @throws Failure */
export async function runVerb(
  verb: Verb,
  args: readonly string[],
  options: VerbOptions & Readonly<Record<string, unknown>>,
  io: Io,
): Promise<Result> {
  const { file, ifMatch } = options;
  const request = requestOf(verb, {
    arguments: args,
    options,
    input: await inputFrom(options, io),
    ...(file === undefined ? {} : { file }),
    ...(ifMatch === undefined ? {} : { ifMatch }),
  });
  const session = await openSession(chatterOf(options, io), options);
  const isSentDryRun = verb.options.some(({ name }) => name === 'dryRun');
  if (options.dryRun && !isSentDryRun) return unsent(session, request);
  if (session.credential === undefined && verb.callers !== 'anyone') throw notSignedIn();
  if (verb.follows && options.follow) {
    if (options.paginate) throw wrongUsage('--follow and --paginate cannot be combined.');
    return { data: null, items: followLog(session, request, verb.columns ?? [], chatterOf(options, io)) };
  }
  if (verb.asks) await confirm([verb.summary, ...args].join(': '), options, io);
  const result = await sendAll(session, request, options, io);
  const people = forPeople(verb.name, result.data);
  const wrapped = wrappedList(result.data);
  return wrapped === undefined
    ? { ...result, people, columns: verb.columns }
    : { ...result, shown: wrapped.rows, columns: wrapped.columns };
}

/** `postern api`: any request but those of a browser session. @throws Failure */
export async function runApi(
  { sessionRoutes }: Verbs,
  [method = '', path = '']: readonly string[],
  options: VerbOptions,
  io: Io,
): Promise<Result> {
  const verb = method.toUpperCase();
  if (!/^(?:GET|POST|PUT|PATCH|DELETE)$/.test(verb))
    throw wrongUsage('METHOD must be GET, POST, PUT, PATCH or DELETE.');
  const input = await inputFrom(options, io);
  const request: ApiRequest = {
    method: verb,
    path: apiPath(path),
    ...(input === undefined ? {} : { body: { kind: 'json', value: input } }),
    ...(options.ifMatch === undefined ? {} : { ifMatch: options.ifMatch }),
  };
  refuseSessionRoutes(request, sessionRoutes);
  const session = await openSession(chatterOf(options, io), options);
  if (options.dryRun) return unsent(session, request);
  return await sendAll(session, request, options, io);
}

/** Without dot segments, as it is sent. @throws Failure of the code 2 */
function apiPath(given: string): string {
  const base = 'http://server/api/v2';
  const url = given.startsWith('/') ? URL.parse(base + given.replace(/^\/api\/v2(?=\/)/, '')) : null;
  if (url === null || url.origin !== 'http://server' || !url.pathname.startsWith('/api/v2/'))
    throw wrongUsage('PATH must be a path below /api/v2, such as /sites.');
  return url.pathname.slice('/api/v2'.length) + url.search;
}

function refuseSessionRoutes({ method, path }: ApiRequest, sessionRoutes: readonly string[]): void {
  const segments = segmentsOf(path.replace(/\?.*$/, ''));
  const isSent = sessionRoutes.some((route) => {
    const [ofRoute = '', template = ''] = route.split(' ');
    const parts = segmentsOf(template);
    return (
      ofRoute === method &&
      parts.length === segments.length &&
      parts.every((part, at) => part.startsWith('{') || part === segments[at])
    );
  });
  if (isSent)
    throw wrongUsage(
      'Only a browser session can make this request.',
      'Make the change on the pages of the web app.',
    );
}

/** Decoded, and without empty segments, so that no spelling of a path is another path. */
function segmentsOf(path: string): string[] {
  return path
    .split('/')
    .filter((part) => part !== '')
    .map((part) => {
      try {
        return decodeURIComponent(part).toLowerCase();
      } catch {
        throw wrongUsage('PATH has a % that starts no escape.');
      }
    });
}

export async function inputFrom(
  { input, keyStdin }: Pick<VerbOptions, 'input' | 'keyStdin'>,
  io: Io,
): Promise<unknown> {
  if (typeof input !== 'string') return undefined;
  if (input === '-' && keyStdin) throw wrongUsage('--input - and --key-stdin both read stdin.');
  const text = input === '-' ? await io.readInput() : await readFile(input, 'utf8').catch(() => undefined);
  if (text === undefined) throw wrongUsage('The file of --input cannot be read.');
  try {
    return JSON.parse(text);
  } catch {
    throw wrongUsage('The input is not JSON.');
  }
}

function unsent({ origin }: Session, { method, path, body, ifMatch }: ApiRequest): Result {
  const content =
    body?.kind === 'file' ? { file: body.path } : { body: body?.kind === 'json' ? body.value : null };
  return {
    data: { method, url: `${origin}/api/v2${path}`, ifMatch: ifMatch ?? null, ...content },
    hint: 'This is a dry run: nothing was sent.',
  };
}

async function confirm(what: string, { yes }: VerbOptions, io: Io): Promise<void> {
  if (yes) return;
  if (!io.canAsk) throw wrongUsage('This cannot be asked without a terminal.', 'Add --yes to confirm it.');
  if (!(await isConfirmed(`${what}. Continue?`, io))) throw declined();
}

/** `io` without progress, which --quiet leaves out. */
function chatterOf({ quiet }: VerbOptions, io: Io): Io {
  return quiet ? { ...io, err: () => undefined } : io;
}

/** The response, or with `--paginate` the items of every page. */
async function sendAll(session: Session, request: ApiRequest, options: VerbOptions, io: Io): Promise<Result> {
  const chatter = chatterOf(options, io);
  const first = await send(session, request, chatter);
  if (!options.paginate || !Array.isArray(first.data)) return toResult(first);
  const items: unknown[] = [...first.data];
  for (let next = nextOf(first.pagination); next !== undefined; ) {
    const [path = '', search] = request.path.split('?');
    const query = new URLSearchParams(search);
    query.set(...next);
    const page = await send(session, { ...request, path: `${path}?${query.toString()}` }, chatter);
    if (Array.isArray(page.data)) items.push(...page.data);
    next = nextOf(page.pagination);
  }
  return { data: items };
}

function nextOf({ current, total, nextCursor }: Pagination = {}): [name: string, value: string] | undefined {
  if (typeof nextCursor === 'string') return ['cursor', nextCursor];
  if (current === undefined || total === undefined || current >= total) return undefined;
  return ['page', String(current + 1)];
}

function toResult({ data, pagination, etag, stream }: Answer): Result {
  return { data, pagination, etag, stream };
}
