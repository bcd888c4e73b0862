import type { Command } from 'commander';
import { exitCodes } from '../core/failure.ts';
import { SafeCommand } from './safe-command.ts';

/** What is generated from the tree of commands: completion, the page for language models, the reference. */
export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

/** Every command that runs something, in the order of the help. */
export function leavesOf(command: Command): Command[] {
  const own = command instanceof SafeCommand && command.runs ? [command] : [];
  return [...own, ...command.commands.flatMap(leavesOf)];
}

/** `sites list` of `postern sites list`. */
function wordsOf(command: Command): string {
  const above = command.parent?.parent ? `${wordsOf(command.parent)} ` : '';
  return command.parent === null ? '' : above + command.name();
}

/** What can follow the words of each command: the names below it, or its options. */
function followers(command: Command): (readonly [words: string, next: readonly string[], isLeaf: boolean])[] {
  const isLeaf = command.commands.length === 0;
  const next = isLeaf
    ? command.options.flatMap(({ long, hidden }) => (long === undefined || hidden ? [] : [long]))
    : command.commands.map((one) => one.name());
  return [[wordsOf(command), next, isLeaf], ...command.commands.flatMap(followers)];
}

/** A script for the shell, which completes commands and options without starting Node. */
export function completionScript(program: Command, shell: Shell): string {
  return shell === 'fish' ? fishScript(program) : `${shell === 'zsh' ? zshStart : ''}${bashScript(program)}`;
}

const zshStart = 'autoload -U +X bashcompinit && bashcompinit\n';

function bashScript(program: Command): string {
  const cases = followers(program).map(
    ([words, next, isLeaf]) => `    "${words}"${isLeaf ? '*' : ''}) next="${next.join(' ')}" ;;`,
  );
  return `_postern() {
  local path="" next="" at
  for ((at = 1; at < COMP_CWORD; at++)); do
    case "\${COMP_WORDS[at]}" in
      -*) ;;
      *) path="\${path:+$path }\${COMP_WORDS[at]}" ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$next" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _postern postern
`;
}

function fishScript(program: Command): string {
  const cases = followers(program).map(
    ([words, next, isLeaf]) =>
      `    case '${words}'${isLeaf ? ` '${words} *'` : ''}\n      string join \\n -- ${next.join(' ')}`,
  );
  return `function __postern_next
  set -l words (commandline -opc)
  set -l path (string join ' ' -- (string match -v -- '-*' $words[2..]))
  switch "$path"
${cases.join('\n')}
  end
end
complete -c postern -f -a '(__postern_next)'
`;
}

/** Every command on one line each, for programs that read text: llms.txt. */
export function llmsText(program: Command): string {
  const lines = leavesOf(program).map((command) => {
    const options = command.options.flatMap(({ flags, hidden, helpGroupHeading }) =>
      hidden || helpGroupHeading !== undefined ? [] : [`[${flags}]`],
    );
    const usage = ['postern', wordsOf(command), ...argumentsOf(command), ...options].join(' ');
    return `- \`${usage}\`: ${command.summary() || command.description()}`;
  });
  return `# postern

> ${program.description()}

Set POSTERN_URL to the server, and POSTERN_KEY or POSTERN_KEY_FILE to a key. A key is never an argument.
In a pipeline, POSTERN_KEY_ID names a federated key, whose rules accept the ID token of the job.
Add \`--json\` to each command: it prints \`{ok, data, error: {code, message, hint, requestId}}\`, also for a failure.
\`--fields a,b\` prints only these fields. \`--dry-run\` changes nothing. Without a terminal no command asks; deletions need \`--yes\`.

## Exit codes

${exitCodes.map(([code, meaning]) => `- ${code}: ${meaning}`).join('\n')}

## Commands

${lines.join('\n')}
`;
}

function argumentsOf({ registeredArguments }: Command): string[] {
  return registeredArguments.map((one) => (one.required ? `<${one.name()}>` : `[${one.name()}]`));
}
