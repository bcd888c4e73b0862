import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

type LockedPackage = {
  readonly link?: boolean;
  readonly integrity?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
};

const file = readFileSync(join(import.meta.dirname, '../package-lock.json'), 'utf8');
const { packages }: { packages: Record<string, LockedPackage> } = JSON.parse(file);
const installed = Object.entries(packages).filter(([path]) => path.includes('node_modules/'));

// `npm ci` refuses a lock file without them, and other platforms would install arbitrary versions.
test('the lock file holds the packages of every platform', () => {
  const names = new Set(installed.map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 13)));
  const absent = installed.flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !names.has(name))
      .map((name) => `${path} → ${name}`),
  );
  expect(absent).toEqual([]);
});

test('every package has a checksum', () => {
  const unchecked = installed.filter(([, { link, integrity }]) => link !== true && integrity === undefined);
  expect(unchecked.map(([path]) => path)).toEqual([]);
});
