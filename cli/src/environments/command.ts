import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Io } from '../core/io.ts';
import { addCommonOptions, printing } from '../print/printing.ts';

/** `watch`, `why` and `env up`: verbs about Environments that send more than one request. */
export function addEnvironmentVerbs(program: Command, env: Command, io: Io): void {
  const watch = program
    .command('watch')
    .summary('Follow a build or an Environment until it is ready.')
    .description(
      'Follow a build or an Environment until it is ready, and print its addresses. Ends with 1 when it fails.\n\nNeeds the scope env:read.',
    )
    .argument('<NAME>', 'the name or the id of an Environment, or the id of a build')
    .addOption(timeoutOption());
  addCommonOptions(watch);
  printing(io, watch, undefined, async () =>
    (await import('./watch.ts')).watch(watch.args[0] ?? '', watch.opts(), io),
  );

  const why = program
    .command('why')
    .summary('See why an Environment is as it is.')
    .description(
      'See why an Environment is as it is: what the newest deploy did, step by step, and what to do about the step that failed.\n\nNeeds the scope env:read.',
    )
    .argument('<NAME>', 'the name, the id or the link of an Environment, or the address of a service of it');
  addCommonOptions(why);
  printing(io, why, ['step', 'ok', 'message', 'fix'], async () =>
    (await import('./why.ts')).why(why.args[0] ?? '', why.opts(), io),
  );

  const up = env
    .command('up')
    .summary('Create the Environment of a branch or deploy it again, and wait until it is ready.')
    .description(
      'Create your Environment of a branch or deploy it again, wait until it is ready, and print its addresses. The repository is that of the git remote origin of the working folder.\n\nNeeds the scopes env:write and repos:read.',
    )
    .argument(
      '[BRANCH]',
      'a branch of the repository. Default: that of the working folder, or of the pipeline in GitHub Actions and GitLab',
    )
    .option('--repository <OWNER/NAME>', 'The repository. Default: that of the git remote origin')
    .option(
      '--name <NAME>',
      'The name of the Environment, if you have several of the branch, or of a new one',
    )
    .option(
      '--idempotency-key <IDEMPOTENCY-KEY>',
      'A repeated request with the same key creates nothing, and waits for the first Environment',
    )
    .addOption(timeoutOption())
    .option('--dry-run', 'Say what it would do, and change nothing.');
  addCommonOptions(up);
  printing(io, up, undefined, async () => (await import('./env-up.ts')).envUp(up.args[0], up.opts(), io));
}

function timeoutOption(): Option {
  return new Option('--timeout <SECONDS>', 'How long to wait before it ends with 8. Default: 1800').argParser(
    (text: string) => {
      const seconds = Number(text);
      if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('Write whole seconds.');
      return seconds;
    },
  );
}
