import { type Command, Option } from 'commander';
import type { Io } from '../core/io.ts';
import type { Part } from './import.ts';
import { addOutputOptions, printing } from '../print/printing.ts';

const parts: readonly Part[] = ['postern.yaml', '_redirects', '_headers'];

export function addImport(program: Command, io: Io): void {
  const command = program
    .command('import')
    .summary('Translate the configuration of another host into postern.yaml.')
    .description(
      `Translate lifecycle.yaml, netlify.toml or vercel.json into postern.yaml, and print it. Says what has no counterpart. Sends nothing, and writes no file.

Redirects and headers of netlify.toml and vercel.json are lines of _redirects and _headers, files of a site: print them with --part. postern deploy translates them by itself.`,
    )
    .argument('<FILE>', 'lifecycle.yaml, netlify.toml or vercel.json')
    .addOption(new Option('--part <PART>', 'What to print').choices(parts).default('postern.yaml'));
  addOutputOptions(command);
  printing(io, command, ['files', 'untranslated'], async () =>
    (await import('./import.ts')).importFile(command.args[0] ?? '', command.opts().part),
  );
}
