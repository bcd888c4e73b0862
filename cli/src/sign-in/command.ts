import type { Command } from 'commander';
import type { Io } from '../core/io.ts';
import { addOutputOptions, printing } from '../print/printing.ts';

/** `login`, `logout` and `context`: which servers there are, and what requests to them are signed in with. */
export function addSignInVerbs(program: Command, io: Io): void {
  const name = ['--context <NAME>', 'The name of the context. Default: the host of the server'] as const;
  const login = program
    .command('login')
    .summary('Sign in to a server, and use it from now on.')
    .description(
      'Sign in to a server with a browser, and use it from now on. Default: the server of POSTERN_URL, or of the context. Replaces and ends an earlier sign-in. Without a terminal, only --token-stdin works.',
    )
    .argument('[URL]', 'the address of the server, such as https://postern.example.com')
    .option('--device', 'Type a code into a browser on another machine.')
    .option(
      '--token-stdin',
      'Store a key that is read from stdin, instead of signing in. The server checks it first.',
    )
    .option('--no-check', 'Store the key of --token-stdin without asking the server.')
    .option('--scope <SCOPES>', 'What to ask for. Default: sites:write env:write repos:read')
    .option('--no-offline', 'End the sign-in with its first access token, after minutes.')
    .option(
      '--issuer <URL>',
      'The OpenID Connect issuer, if it is not the one of the server, such as a realm of Keycloak.',
    )
    .option(...name);
  addOutputOptions(login);
  printing(io, login, ['context', 'server', 'credential'], async () =>
    (await import('./login.ts')).login(login.args[0], login.opts(), io),
  );

  const logout = program
    .command('logout')
    .description('Sign out, and end the sign-in at the server.')
    .option('--context <NAME>', 'The name of the context. Default: the current one');
  addOutputOptions(logout);
  printing(io, logout, ['context', 'server'], async () =>
    (await import('./login.ts')).logout(logout.opts(), io),
  );

  const context = program.command('context').description('Servers: list, choose, add.').usage('<command>');
  const list = context.command('list').description('List the servers.');
  addOutputOptions(list);
  printing(io, list, ['name', 'server', 'credential', 'current'], async () =>
    (await import('./context-verbs.ts')).listContexts(io),
  );
  const use = context
    .command('use')
    .description('Choose the server that verbs use.')
    .argument('<NAME>', 'as context list prints it');
  addOutputOptions(use);
  printing(io, use, ['context', 'server'], async () =>
    (await import('./context-verbs.ts')).useContext(use.args[0] ?? '', io),
  );
  const add = context
    .command('add')
    .summary('Add a server without signing in, and use it from now on.')
    .description(
      'Add a server without signing in, and use it from now on, such as with a key of POSTERN_KEY.',
    )
    .argument('<URL>', 'the address of the server')
    .option(...name);
  addOutputOptions(add);
  printing(io, add, ['context', 'server'], async () =>
    (await import('./context-verbs.ts')).addContext(add.args[0] ?? '', add.opts().context, io),
  );
}
