import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Creates another build of the program: the same code with one more migration, one more field in each configuration
 * document (also in a nested object), and one more scope.
 */
export type Build = { readonly main: string; remove(): void };

const root = join(import.meta.dirname, '../..');
export const nextStep = '9999_next.sql';

/** File, the text to replace, and its replacement. */
const nextSource = [
  ['src/core/scopes.ts', "  'env:read',\n  'env:write',", "  'next:read',\n  'env:read',\n  'env:write',"],
  [
    'src/features/keys/key-policy.ts',
    '  rateLimitPerMinute: 600,',
    '  rateLimitPerMinute: 600,\n  nextRule: true,',
  ],
  [
    'src/features/keys/policy-schema.ts',
    '    rateLimitPerMinute: z',
    '    nextRule: z.boolean(),\n    rateLimitPerMinute: z',
  ],
  [
    'src/features/sites/site/sites-config.ts',
    '    cleanup: z.strictObject({ ',
    '    next: z.strictObject({ isOn: z.boolean() }),\n    cleanup: z.strictObject({ nextMinutes: whole(1, 60), ',
  ],
  [
    'src/features/sites/site/sites-config.ts',
    '  cleanup: { intervalMinutes: 15 },',
    '  next: { isOn: true },\n  cleanup: { nextMinutes: 1, intervalMinutes: 15 },',
  ],
] as const;

/**
 * `seconds`: how long its migration takes. The migration does what a release may do: adds a column and a table, and fills
 * them.
 */
export function makeNextBuild(seconds: number): Build {
  const folder = mkdtempSync(join(tmpdir(), 'postern-next-'));
  for (const part of ['src', 'migrations', 'package.json'])
    cpSync(join(root, part), join(folder, part), { recursive: true });
  for (const [file, before, after] of nextSource) replaceIn(join(folder, file), before, after);
  for (const part of ['node_modules', 'ui']) symlinkSync(join(root, part), join(folder, part));
  writeFileSync(
    join(folder, 'migrations', nextStep),
    `alter table api_keys add column note text not null default 'none';
     create table next_things (id int primary key);
     select pg_sleep(${seconds});
     insert into next_things select generate_series(1, 1000);`,
  );
  return {
    main: join(folder, 'src/main.ts'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function replaceIn(file: string, before: string, after: string): void {
  const [head, tail, ...more] = readFileSync(file, 'utf8').split(before);
  if (head === undefined || tail === undefined || more.length > 0)
    throw new Error(`${file} has not once: ${before}. Fix nextSource in builds.ts.`);
  writeFileSync(file, head + after + tail);
}
