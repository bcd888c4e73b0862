import { contextFile } from '../http/contexts.ts';
import { Failure } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import { signInText } from '../print/for-people.ts';
import type { Result } from '../print/output.ts';
import { send, type Session, unreachable, versionHeader, versionsDiffer } from '../http/send.ts';
import { notSignedIn, openServer, openSession, type SessionOptions } from '../http/session.ts';
import verbs from '../verbs.json' with { type: 'json' };

/** `failed`: verbs fail because of it; `advice`: they may. */
type Finding = {
  readonly check: 'credentials' | 'server' | 'version' | 'clock' | 'sign-in';
  readonly state: 'ok' | 'advice' | 'failed';
  readonly message: string;
  readonly fix: string | null;
};

/** An access token is renewed 30 s before its end, so a larger difference breaks the sign-in. */
const maxClockDifferenceMs = 30_000;
const timeoutMs = 10_000;

/** What a verb needs on this machine and of its server. Changes nothing. @throws Failure when it cannot look at all */
export async function doctor(options: SessionOptions, io: Io): Promise<Result> {
  const findings = await examine(options, io);
  const isWell = findings.every(({ state }) => state !== 'failed');
  return {
    data: findings,
    columns: ['check', 'state', 'message', 'fix'],
    ...(isWell ? {} : { exitCode: 1 as const }),
  };
}

async function examine(options: SessionOptions, io: Io): Promise<Finding[]> {
  const file = await tried('credentials', async () => {
    const { servers } = await contextFile(io).read();
    const count = Object.keys(servers).length;
    return `The file of the credentials has ${count} ${count === 1 ? 'context' : 'contexts'}, and only you can read it.`;
  });
  if (file.state === 'failed') return [file];
  const server = await found('server', async () => await openServer(io, options));
  if ('state' in server) return [file, server];
  const { origin, name } = server;
  const answer = await found('server', async () => await ask(origin, io));
  if ('state' in answer) return [file, answer];
  const from = name === undefined ? 'POSTERN_URL' : `the context ${name}`;
  return [
    file,
    ok('server', `${origin}, of ${from}, answers.`),
    versionFinding(answer.version, origin),
    clockFinding(answer.aheadMs),
    await tried('sign-in', async () => signedInAs(await openSession(io, options), io)),
  ];
}

/** Without a credential: only the head of the response counts. */
async function ask(origin: string, { now }: Pick<Io, 'now'>) {
  try {
    const { headers, body } = await fetch(`${origin}/api/v2/auth/context`, {
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    await body?.cancel();
    return {
      version: headers.get(versionHeader),
      // The server names whole seconds, of which half have passed on average.
      aheadMs: now() - (Date.parse(headers.get('date') ?? '') + 500),
    };
  } catch (error) {
    throw unreachable(origin, error);
  }
}

export function versionFinding(version: string | null, origin: string): Finding {
  if (version === verbs.version) return ok('version', `Server and command line have the version ${version}.`);
  if (version === null)
    return {
      check: 'version',
      state: 'failed',
      message: `${origin} does not answer as Postern.`,
      fix: 'Check the address: it must be that of the web app. postern context list shows the servers.',
    };
  return {
    check: 'version',
    state: 'advice',
    message: versionsDiffer(version),
    fix: `Install the version of the server: npm install --global @postern/cli@${version}, or ${origin}/cli/postern.mjs`,
  };
}

export function clockFinding(aheadMs: number): Finding {
  if (Number.isNaN(aheadMs))
    return { check: 'clock', state: 'advice', message: 'The server does not say its time.', fix: null };
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  if (Math.abs(aheadMs) <= maxClockDifferenceMs)
    return ok('clock', `The clocks differ by ${seconds} s at most.`);
  return {
    check: 'clock',
    state: 'failed',
    message: `The clock of this machine is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} that of the server.`,
    fix: 'Synchronize the clocks of both machines, such as with timedatectl set-ntp true.',
  };
}

type Context = {
  readonly principal: { readonly name: string | null };
  readonly authMethod: string;
  readonly keyName: string | null;
  readonly effectiveScopes: readonly string[] | null;
};

async function signedInAs(session: Session, io: Io): Promise<string> {
  if (session.credential === undefined) throw notSignedIn();
  const quiet = { ...io, err: () => undefined };
  const answer = await send(session, { method: 'GET', path: '/auth/context?check=true' }, quiet);
  // The route list of the server gives this shape.
  const { principal, authMethod, keyName, effectiveScopes } = answer.data as Context;
  const by = signInText(authMethod, `the key ${keyName ?? ''}`);
  return `${principal.name ?? 'Unknown'}, by ${by}, with ${effectiveScopes?.join(' ') || 'no scope'}.`;
}

function ok(check: Finding['check'], message: string): Finding {
  return { check, state: 'ok', message, fix: null };
}

async function tried(check: Finding['check'], look: () => Promise<string>): Promise<Finding> {
  const seen = await found(check, look);
  return typeof seen === 'string' ? ok(check, seen) : seen;
}

/** What it returns, or what its failure says. */
async function found<T>(check: Finding['check'], look: () => Promise<T>): Promise<T | Finding> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const { message, hint } = error;
    return { check, state: 'failed', message, fix: hint ?? usualFixes[error.code] ?? null };
  }
}

const usualFixes: Readonly<Record<string, string>> = {
  unreachable: 'Check the address, the network, and that the server runs.',
};
