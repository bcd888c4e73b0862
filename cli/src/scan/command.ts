import type { Command } from 'commander';
import type { Io } from '../core/io.ts';
import { addOutputOptions, printing } from '../print/printing.ts';

/** `scan`, which is `keys scan` too. It sends nothing. */
export function addScan(parent: Command, io: Io): void {
  const command = parent
    .command('scan')
    .summary('Find keys in files; ends with 1 if there is one.')
    .description(
      `Find keys in files. Prints file:line:column and the public part of each key, never the secret; ends with 1 if there is a key. Sends nothing.

In a folder it leaves out .git and what each .gitignore leaves out, because git publishes neither. A path that is named is always read. Links in folders are not followed.

A key of the current form is found by its checksum, whatever its first word is. Keys of the older form have none: they are found by the first word.`,
    )
    .argument('[PATH...]', 'files and folders; - is stdin. Default: this folder')
    .option('--prefix <WORD>', 'The first word of keys of the older form (KEY_PREFIX)', 'app');
  addOutputOptions(command);
  printing(io, command, ['path', 'line', 'column', 'key', 'type', 'form'], async () =>
    (await import('./scan.ts')).scan(command.args, command.opts().prefix, io),
  );
}
