import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type Server, type Socket } from 'node:net';
import { createMutex } from '../../../../platform/mutex.ts';
import type { Backend } from './backend.ts';
import {
  answerIn,
  fatalMessage,
  passwordRequest,
  queryMessage,
  Refusal,
  syncMessage,
  type Take,
  takeFrom,
  takeMessage,
} from './messages.ts';
import { createStatementNames } from './statement-names.ts';

/** Login of PGlite, which has one user and one database. */
const login = { user: 'postgres', database: 'postgres' } as const;

const maxConnections = 20;
/** Maximum bytes of the first packet and of the password, as in PostgreSQL. */
const maxSignInBytes = 10_000;
const signInMs = 60_000;
/** Codes of first packets (PostgreSQL manual, "Message Formats"). */
const [protocol, cancel, ssl, gss] = [196_608, 80_877_102, 80_877_103, 80_877_104];
/** Query, Sync and FunctionCall, after which PostgreSQL sends its status. */
const complete = 'QSF';
/** Parse, Bind, Describe, Execute, Close: PostgreSQL sends its status only after Sync. */
const parts = 'PBDEC';
/** Flush: the bridge sends every answer immediately. CopyData, CopyDone, CopyFail: the COPY has already failed (backend.ts). */
const ignored = 'Hdcf';

/**
 * Serves the PostgreSQL protocol to many clients of PGlite, which has one session. Clients take turns: each keeps its turn
 * until its transaction ends, and a disconnect rolls the transaction back. All clients share the settings, temporary tables
 * and locks of the session, which end with the last client.
 */
export function createBridge(deps: {
  readonly backend: Backend;
  readonly password: string;
  readonly maxMessageBytes?: number;
  /** PGlite did not answer. Its state is unknown, and the caller ends this process. */
  readonly onFailure: (error: unknown) => void;
}): Server {
  const { backend, maxMessageBytes = 16 * 2 ** 20 } = deps;
  const turns = createMutex();
  let connections = 0;
  let signedIn = 0;
  let count = 0;

  async function run(message: Buffer) {
    try {
      const output = await backend.run(message);
      const answer = answerIn(output);
      const isComplete = complete.includes(message.toString('latin1', 0, 1));
      if (isComplete && answer.status === undefined) throw new Error('PGlite did not say that it is ready.');
      return { output, status: answer.status };
    } catch (error) {
      deps.onFailure(error);
      throw error;
    }
  }

  /** Returns false if the client has disconnected. @throws Refusal */
  async function signIn(socket: Socket, take: Take): Promise<boolean> {
    const parameters = await startOf(socket, take);
    if (parameters === undefined) return false;
    if (connections > maxConnections)
      throw new Refusal('53300', `The database has ${maxConnections} connections already.`);
    socket.write(passwordRequest);
    const message = await takeMessage(take, maxSignInBytes);
    if (message === undefined) return false;
    const { user, database = user } = parameters;
    const isRight =
      message.toString('latin1', 0, 1) === 'p' &&
      isSame(message.toString('utf8', 5, message.length - 1), deps.password);
    if (!isRight || user !== login.user) throw new Refusal('28P01', 'The role or its password is wrong.');
    if (database !== login.database)
      throw new Refusal('3D000', `The database "${database}" does not exist; its name is ${login.database}.`);
    socket.write(backend.greeting);
    return true;
  }

  /** Sends the messages of a client to PGlite until the client disconnects. @throws Refusal */
  async function converse(socket: Socket, take: Take): Promise<void> {
    const names = createStatementNames((count += 1));
    let hasTurn = false;
    try {
      for (;;) {
        const message = await takeMessage(take, maxMessageBytes);
        const type = message?.toString('latin1', 0, 1) ?? 'X';
        if (message === undefined || type === 'X') return;
        if (ignored.includes(type)) continue;
        if (!complete.includes(type) && !parts.includes(type))
          throw new Refusal('08P01', `A message of the unknown type ${JSON.stringify(type)} was sent.`);
        if (!hasTurn) await turns.enter();
        hasTurn = true;
        const translated = names.translated(message);
        if (translated.before !== undefined) await run(translated.before);
        const { output, status } = await run(translated.message);
        if (status === 'I') {
          turns.leave();
          hasTurn = false;
        }
        if (!socket.write(output)) await drained(socket);
      }
    } finally {
      if (!hasTurn) await turns.enter();
      const { status } = await run(syncMessage);
      if (status !== 'I') await run(queryMessage('rollback'));
      for (const message of names.closing()) await run(message);
      signedIn -= 1;
      if (signedIn === 0) await run(queryMessage('discard all'));
      await run(syncMessage);
      turns.leave();
    }
  }

  async function serve(socket: Socket): Promise<void> {
    const take = takeFrom(socket);
    socket.setTimeout(signInMs, () => socket.destroy());
    try {
      if (!(await signIn(socket, take))) return;
      socket.setTimeout(0);
      signedIn += 1;
      await converse(socket, take);
    } catch (error) {
      if (error instanceof Refusal) socket.write(fatalMessage(error));
    } finally {
      socket.end(() => socket.destroy());
    }
  }

  return createServer({ noDelay: true }, (socket) => {
    connections += 1;
    socket.on('error', () => undefined);
    socket.on('close', () => {
      connections -= 1;
    });
    void serve(socket);
  });
}

/** Parameters of the first packet. Undefined: the client disconnected, or sent a cancel request. @throws Refusal */
async function startOf(socket: Socket, take: Take): Promise<Readonly<Record<string, string>> | undefined> {
  // A client may ask for TLS and for GSSAPI first, each once.
  for (let packet = 0; packet < 3; packet += 1) {
    const length = (await take(4))?.readInt32BE(0);
    if (length === undefined) return undefined;
    if (length < 8 || length > maxSignInBytes)
      throw new Refusal('08P01', `The first packet has ${length} bytes; allowed are 8 to ${maxSignInBytes}.`);
    const rest = await take(length - 4);
    if (rest === undefined) return undefined;
    const code = rest.readInt32BE(0);
    if (code === ssl || code === gss) socket.write('N');
    else if (code === cancel) return undefined;
    else if (code !== protocol)
      throw new Refusal('0A000', 'The database speaks version 3.0 of the protocol.');
    else return parametersIn(rest.toString('utf8', 4));
  }
  throw new Refusal('08P01', 'The client asked for encryption again and again.');
}

function parametersIn(text: string): Record<string, string> {
  const words = text.split('\0');
  const found: Record<string, string> = {};
  for (let at = 0; at + 1 < words.length && words[at] !== ''; at += 2)
    found[words[at] ?? ''] = words[at + 1] ?? '';
  return found;
}

/** Takes the same time for every password. */
function isSame(one: string, other: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

/** Resolves when the client has read the output or has disconnected. */
async function drained(socket: Socket): Promise<void> {
  if (socket.destroyed) return;
  await new Promise<void>((resolve) => {
    const go = () => {
      socket.off('drain', go).off('close', go);
      resolve();
    };
    socket.on('drain', go).on('close', go);
  });
}
