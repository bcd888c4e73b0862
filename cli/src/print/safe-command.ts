import { Command, type ErrorOptions } from 'commander';
import { wrongUsage } from '../core/failure.ts';

/** Commands of the server, which people may type here by mistake: docs/reference/commands.md. */
const serverCommand =
  /^postern (?:admin|all|audit verify|backup|doctor (?:all|gateway|web|worker)|drill|gateway|keys import|migrate|pod|restore|secrets|sites check|web|worker)$/;

/** Says what is wrong without the argument itself, which may be a key. */
export class SafeCommand extends Command {
  /** True: it runs something, also when it has commands below it. */
  runs = false;

  override action(...[listener]: Parameters<Command['action']>): this {
    this.runs = true;
    return super.action(listener);
  }

  override createCommand(name?: string): SafeCommand {
    return new SafeCommand(name);
  }

  override error(message: string, { code = '' }: ErrorOptions = {}): never {
    const isOfServer = serverCommand.test(`${pathOf(this)} ${this.args[0] ?? ''}`);
    throw wrongUsage(
      mistakeOf(this, code, message),
      isOfServer
        ? 'The server has a command of this name: npm start -- --help, where it is installed.'
        : `Help: ${pathOf(this)} --help`,
    );
  }
}

function mistakeOf(command: Command, code: string, message: string): string {
  // Commander puts a suggestion of known words last.
  const [, suggestion] = /\n\((Did you mean [^\n]+\?)\)$/.exec(message) ?? [];
  const hint = suggestion === undefined ? '' : ` ${suggestion}`;
  switch (code) {
    case 'commander.unknownCommand':
      return `There is no such command.${hint}`;
    case 'commander.unknownOption':
      return `There is no such option.${hint}`;
    case 'commander.excessArguments':
      return `Too many arguments: the command takes ${command.registeredArguments.length || 'none'}.`;
    case 'commander.missingArgument':
      return message.replace(/^error: missing required argument '([^']+)'$/, '$1 is missing.');
    case 'commander.optionMissingArgument':
      return message.replace(/^error: option '(\S+) [^']*' argument missing$/, '$1 needs a value.');
    case 'commander.missingMandatoryOptionValue':
      return message.replace(/^error: required option '(\S+) [^']*' not specified$/, '$1 is missing.');
    case 'commander.invalidArgument': {
      // Commander puts the value between the option and the message of its parser, which is the last sentence.
      const [, name] = /^error: option '(\S+) /.exec(message) ?? [];
      const [, reason] = / is invalid\. ([^.]+\.)$/.exec(message) ?? [];
      return name === undefined || reason === undefined
        ? 'An option has a value that cannot be used.'
        : `${name} has a value that cannot be used. ${reason}`;
    }
    default:
      return 'The command line cannot be read.';
  }
}

/** `postern sites list` of the command `list`. */
export function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}
