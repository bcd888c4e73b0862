import type { Io } from '../core/io.ts';
import type { Body } from './request.ts';
import { send, type Session } from './send.ts';
import { notSignedIn, openSession, type SessionOptions } from './session.ts';

/** A request of a verb that sends several; returns the data of the envelope. @throws Failure */
export type Call = <T>(method: string, path: string, body?: Body) => Promise<T>;

export type CallerOptions = SessionOptions & { readonly quiet?: boolean; readonly json?: boolean };

export type OpenCaller = {
  readonly session: Session;
  readonly call: Call;
  /** `io` for progress and chatter, which --quiet and --json leave out. */
  readonly chatter: Io;
};

/** @throws Failure of the code 4 when there is no credential */
export async function openCaller(io: Io, options: CallerOptions): Promise<OpenCaller> {
  const isSilent = options.quiet === true || options.json === true;
  const chatter = isSilent ? { ...io, err: () => undefined, errIsTerminal: false } : io;
  const session = await openSession(chatter, options);
  if (session.credential === undefined) throw notSignedIn();
  return {
    session,
    chatter,
    call: async <T>(method: string, path: string, body?: Body) => {
      const request = { method, path, ...(body === undefined ? {} : { body }) };
      // The route list of the server gives these shapes; a server that breaks them breaks the verb.
      return (await send(session, request, chatter)).data as T;
    },
  };
}
