import { syncBuiltinESMExports } from 'node:module';
import { afterAll } from 'vitest';

/**
 * Replaces functions of a module of Node for every module that imports them, until the tests of this file are over.
 * `vi.mock` would not reach modules that an earlier test file loaded: the test files of one process share their modules.
 * @param builtin the default export of the module, such as `fs` of `node:fs`
 */
export function replaceBuiltin<M extends object>(builtin: M, replacements: Partial<M>): void {
  const names = Object.keys(replacements) as (keyof M)[];
  const originals: Partial<M> = {};
  for (const name of names) originals[name] = builtin[name];
  const put = (functions: Partial<M>) => {
    Object.assign(builtin, functions);
    syncBuiltinESMExports();
  };
  put(replacements);
  afterAll(() => put(originals));
}
