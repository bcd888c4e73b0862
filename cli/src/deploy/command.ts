import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Io } from '../core/io.ts';
import { addCommonOptions, printing } from '../print/printing.ts';

export function addDeploy(program: Command, io: Io): void {
  const command = program
    .command('deploy')
    .summary('Publish a folder as a site; sends only what the server does not have.')
    .description(
      `Publish a folder as a site. Sends only the contents that no version of your sites has, and prints the address; of a private site the link, which leads to it for as long as it exists. After a lost connection, or Ctrl-C and a new start, it continues.

Without --site it publishes to the site that postern.yaml (site: { id: … }) or postern.site.json beside the folder names for the folder. If they name none, it creates a site and writes postern.site.json. If they name sites of other folders only, it asks first. In a pipeline it creates no site.

The sites of a service key are public: such a deploy needs --public. Private sites need a personal key. It leaves out what .posternignore in the folder names, and links; in the root of a git work tree, also what .gitignore names. It prints what it left out, and why.

Redirects and headers of a netlify.toml or vercel.json in the folder or beside it are added to _redirects and _headers of the site. It says what has no counterpart.`,
    )
    .argument(
      '[DIR]',
      'the folder. Default: the one that postern.yaml names (site: { folder: … }, or the output of its static service); otherwise dist, build, out, public or _site, whichever exists',
    )
    .option('--site <SITE>', 'The id of the site, or the name of one of your sites')
    .option(
      '--name <NAME>',
      'The name of a new site, which is then created without a question. Default: that of the folder above DIR',
    )
    .option('--public', 'Create a public site, or refuse if the site is private')
    .option('--private', 'Create a private site, or refuse if the site is public')
    .addOption(
      new Option(
        '--expires <LIFETIME>',
        'How long the site lives from now, such as 48h or 90d. Default: at least the default lifetime of the server',
      ).argParser(hoursOf),
    )
    .option(
      '--site-file <FILE>',
      'Where to remember the sites of folders. Default: postern.site.json beside DIR',
    )
    .option(
      '--watch',
      'Publish again after each change, until Ctrl-C. What the server refuses is printed, and the next change is tried.',
    )
    .option(
      '--dry-run',
      'Check the files and say what would be sent. Sends no content, and publishes nothing.',
    );
  addCommonOptions(command);
  printing(io, command, undefined, async () =>
    (await import('./deploy.ts')).deploy(command.args[0], command.opts(), io),
  );
}

function hoursOf(text: string): number {
  const [, count, unit] = /^([1-9]\d{0,5})([hd])$/.exec(text) ?? [];
  if (count === undefined) throw new InvalidArgumentError('Write hours or days, such as 48h or 90d.');
  return Number(count) * (unit === 'd' ? 24 : 1);
}
