import { createHash } from 'node:crypto';

/** A Lua script, which the server runs atomically. Its keys must share a hash tag: `rl:{owner}:…`. */
export type KvScript = { readonly source: string; readonly sha1: string };

export function kvScript(source: string): KvScript {
  return { source, sha1: createHash('sha1').update(source).digest('hex') };
}
