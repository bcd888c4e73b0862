import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Another build of the program beside this one: the same code, with a step of the database more. */
export type Build = { readonly main: string; remove(): void };

const root = join(import.meta.dirname, '../..');
export const nextStep = '9999_next.sql';

/** `seconds`: how long its step takes. It does what a release may do: adds a column and a table, and fills them. */
export function makeNextBuild(seconds: number): Build {
  const folder = mkdtempSync(join(tmpdir(), 'postern-next-'));
  for (const part of ['src', 'migrations', 'package.json'])
    cpSync(join(root, part), join(folder, part), { recursive: true });
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
