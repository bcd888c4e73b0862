import { contextFile, contextNamed } from '../http/contexts.ts';
import { wrongUsage } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import { nameOf } from './login.ts';
import { originOf } from '../http/origin.ts';
import type { Result } from '../print/output.ts';

const contextFields = ['name', 'server', 'credential', 'current'] as const;

export async function listContexts(io: Io): Promise<Result> {
  const { current, servers } = await contextFile(io).read();
  const data = Object.entries(servers).map(([name, { origin, credential }]) => ({
    name,
    server: origin,
    credential: credential?.kind ?? null,
    current: name === current,
  }));
  return { data, columns: contextFields };
}

export async function useContext(name: string, io: Io): Promise<Result> {
  return await contextFile(io).update(async (contexts) => {
    const { origin } = contextNamed(contexts, name);
    return { contexts: { ...contexts, current: name }, result: { data: { context: name, server: origin } } };
  });
}

/** A server without a credential, which `postern login` or a key brings. */
export async function addContext(address: string, given: string | undefined, io: Io): Promise<Result> {
  const origin = originOf(address, 'URL');
  const name = given ?? nameOf(origin);
  return await contextFile(io).update(async ({ servers }) => {
    if (Object.hasOwn(servers, name))
      throw wrongUsage(`There is a context ${name} already.`, 'Name another: --context');
    return {
      contexts: { current: name, servers: { ...servers, [name]: { origin, credential: null } } },
      result: { data: { context: name, server: origin } },
    };
  });
}
