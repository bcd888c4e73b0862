import { readFile } from 'node:fs/promises';
import { type Context, type ContextFile, contextFile, contextNamed } from './contexts.ts';
import { Failure, wrongUsage } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import { exchangedToken } from './exchange.ts';
import { originOf } from './origin.ts';
import type { Session } from './send.ts';
import { freshAccessToken } from './tokens.ts';

export type SessionOptions = {
  /** The name of a context; undefined = the current one. */
  readonly context?: string | undefined;
  readonly keyStdin?: boolean | undefined;
};

/** The server of a verb. Nothing in the working folder has a say. @throws Failure */
export async function openServer(
  io: Pick<Io, 'env' | 'wait'>,
  options: Pick<SessionOptions, 'context'>,
): Promise<{ origin: string; name: string | undefined; context: Context | undefined; file: ContextFile }> {
  const file = contextFile(io);
  const contexts = await file.read();
  const name = options.context ?? contexts.current ?? undefined;
  const context = name === undefined ? undefined : contextNamed(contexts, name);
  return { origin: serverOf(io.env['POSTERN_URL'], context, name), name, context, file };
}

/** The server and the credential of a verb. @throws Failure */
export async function openSession(io: Io, options: SessionOptions): Promise<Session> {
  const { origin, name, context, file } = await openServer(io, options);
  const key = await givenKey(io, options.keyStdin === true);
  if (key !== undefined) return { origin, credential: key };
  const stored = context?.credential ?? null;
  if (stored?.kind === 'key') return { origin, credential: stored.key };
  const renew =
    stored === null || name === undefined
      ? exchangedToken(origin, io)
      : async () => await freshAccessToken(file, name, io);
  return renew === undefined
    ? { origin, credential: undefined }
    : { origin, credential: await renew(), renew };
}

function serverOf(url: string | undefined, context: Context | undefined, name: string | undefined): string {
  const named = url === undefined || url === '' ? undefined : originOf(url, 'POSTERN_URL');
  if (context === undefined) {
    if (named !== undefined) return named;
    throw wrongUsage(
      'No server is named.',
      'Set POSTERN_URL, or sign in: postern login https://postern.example.com',
    );
  }
  // A key of one server must not reach another.
  if (named !== undefined && named !== context.origin)
    throw wrongUsage(
      `POSTERN_URL names ${named}, and the context ${name} names ${context.origin}.`,
      'Unset POSTERN_URL, or choose another context with --context.',
    );
  return context.origin;
}

/** The key of --key-stdin, POSTERN_KEY or POSTERN_KEY_FILE. */
async function givenKey(io: Io, isOnStdin: boolean): Promise<string | undefined> {
  const { POSTERN_KEY: key, POSTERN_KEY_FILE: file } = io.env;
  const sources = [isOnStdin && '--key-stdin', key && 'POSTERN_KEY', file && 'POSTERN_KEY_FILE'].filter(
    Boolean,
  );
  if (sources.length > 1) throw wrongUsage(`${sources.join(' and ')} both give a key.`, 'Give one of them.');
  if (isOnStdin) return credentialFrom(await io.readInput(), '--key-stdin');
  if (key) return credentialFrom(key, 'POSTERN_KEY');
  if (!file) return undefined;
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) throw wrongUsage('The file that POSTERN_KEY_FILE names cannot be read.');
  return credentialFrom(text, 'POSTERN_KEY_FILE');
}

/** @throws Failure that does not contain the value */
export function credentialFrom(text: string, source: string): string {
  const value = text.trim();
  if (!/^[\x21-\x7e]{1,4096}$/.test(value)) throw wrongUsage(`${source} holds no key.`);
  return value;
}

export function notSignedIn(): Failure {
  return new Failure('authentication_required', 4, 'No credential is given.', {
    hint: 'Set POSTERN_KEY or POSTERN_KEY_FILE, or POSTERN_KEY_ID in a pipeline, or sign in: postern login',
  });
}
