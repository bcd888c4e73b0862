import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../scripts/local-servers.ts';
import type { Io } from '../../cli/src/core/io.ts';
import { createProgram, run } from '../../cli/src/program.ts';
import { pathOf } from '../../cli/src/print/safe-command.ts';
import { leavesOf } from '../../cli/src/print/tree.ts';
import type { Verbs } from '../../cli/src/core/verb.ts';
import generated from '../../cli/src/verbs.json' with { type: 'json' };

// Every verb against a server that answers each way: which exit codes it ends with. docs/reference/cli-exit-codes.md is the
// result; after a change on purpose: npm run test:cli -- test/cli/exit-codes.test.ts -u

// The file is written by cli/generate.ts, whose result has this type.
const { verbs } = generated as Verbs;

let home: string;
let origin: string;
let closed: string;
const server = createServer((request, response) => {
  request.resume().on('end', () => answer(request, response));
});

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-exit-codes-'));
  for (const folder of ['dist', 'config/postern']) await mkdir(join(home, folder), { recursive: true });
  await writeFile(join(home, 'dist/index.html'), '<p>');
  await writeFile(join(home, 'body.json'), '{}');
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server has no port.');
  origin = `http://127.0.0.1:${address.port}`;
  closed = `http://127.0.0.1:${await freePort()}`;
});
afterAll(async () => {
  server.close();
  await rm(home, { recursive: true, force: true });
});

/** What the server is asked to do: the key of a request names it, or the path of the issuer. */
const answers = {
  done: 200,
  error: 500,
  absent: 404,
  refused: 401,
  limited: 429,
  conflict: 409,
  building: 200,
} as const;
type Way = keyof typeof answers;

function answer({ url = '', headers, method }: IncomingMessage, response: ServerResponse): void {
  const [path = ''] = url.replace('/api/v2', '').split('?');
  const [, issuer] = /^\/issuer\/(\w+)\//.exec(path) ?? [];
  // Every way is a key of `answers`; a request without one is that of a login.
  const way = (issuer ?? headers.authorization?.replace('Bearer ', '') ?? 'done') as Way;
  const status = path.endsWith('/openid-configuration') && way !== 'error' ? 200 : answers[way];
  response.writeHead(status, {
    'content-type': 'application/json',
    'retry-after': '3600',
    'postern-version': generated.version,
  });
  const data = dataAt(`${method} ${path}`, way);
  const error = { code: `code_of_${status}`, message: 'Refused.' };
  response.end(
    JSON.stringify(
      issuer === undefined
        ? { data, error }
        : { ...ofIssuer(issuer), ...(status === 401 ? { error: 'access_denied' } : {}) },
    ),
  );
}

function ofIssuer(way: string) {
  const issuer = `${origin}/issuer/${way}`;
  const endpoints = ['authorization', 'token', 'revocation', 'device_authorization'];
  return {
    issuer,
    ...Object.fromEntries(endpoints.map((name) => [`${name}_endpoint`, `${issuer}/${name}`])),
    device_code: 'code',
    user_code: 'CODE',
    verification_uri: `${issuer}/device`,
    access_token: 'token',
    expires_in: 3600,
  };
}

/** The part that a verb reads. */
function dataAt(route: string, way: Way): unknown {
  const site = {
    id: 's1',
    name: 'Site',
    url: 'http://s1.localhost',
    link: 'http://localhost/s1',
    expiresAt: null,
    version: { number: 1 },
  };
  const upload = { maxFileBytes: 9, maxExtractedBytes: 9, maxFiles: 9, allowedExtensions: ['html'] };
  const status = way === 'building' ? 'building' : 'deployed';
  const environment = { id: 'env_1', uuid: 'shop', status, link: 'http://localhost/e/env_1', services: [] };
  const known: readonly (readonly [RegExp, unknown])[] = [
    [
      /^GET \/auth\/context$/,
      { principal: { name: 'Ada' }, authMethod: 'api_key', decision: { allowed: true, rules: [] } },
    ],
    [/^GET \/(?:environments|repositories|sites)$/, []],
    [/^(?:GET \/environments\/[^/]+|POST \/environments)$/, environment],
    [/^GET \/builds\/[^/]+$/, { status, environment, problems: [] }],
    [/^GET \/sites\/capabilities$/, { upload, ttl: { enabled: true, maxHours: 1 } }],
    [/\/why$/, []],
    [/\/schema\/validate$/, { valid: true, problems: [] }],
    [/\/uploads$/, { id: 'u1', missing: [] }],
    [/^GET \/config\/\S+\/history$/, [{ version: 0, config: {}, policy: {} }]],
    [/^\w+ \/sites\/[^/]+(?:\/uploads\/u1\/publish)?$/, site],
  ];
  return known.find(([pattern]) => pattern.test(route))?.[1] ?? {};
}

function ioFor(way: Way | 'closed'): Io {
  let now = 0;
  return {
    env: {
      XDG_CONFIG_HOME: join(home, 'config'),
      POSTERN_URL: way === 'closed' ? closed : origin,
      POSTERN_KEY: way === 'closed' ? 'done' : way,
    },
    out: async () => undefined,
    err: () => undefined,
    outTerminal: null,
    errIsTerminal: false,
    canAsk: false,
    ask: async () => '',
    readInput: async () => '{}',
    now: () => now,
    wait: async (ms) => {
      now += ms;
    },
  };
}

const values: Readonly<Record<string, string>> = {
  'OWNER/NAME': 'acme/website',
  NUMBER: '1',
  METHOD: 'GET',
  PATH: 'index.html',
  SHELL: 'bash',
  SCOPE: 'sites:read',
};

/** What a verb needs besides its arguments. */
function optionsOf(words: string): string[] {
  const special: Readonly<Record<string, string[]>> = {
    deploy: [join(home, 'dist'), '--site', 's1', '--site-file', join(home, 'site.json')],
    'env up': ['main', '--repository', 'acme/website'],
    'context add': ['--context', 'added'],
    'schema validate': [join(home, 'body.json')],
  };
  const own = special[words];
  if (own !== undefined) return own;
  const verb = verbs.find(({ name }) => name === words);
  if (verb === undefined) return words.startsWith('config diff') ? ['--version', '0'] : [];
  const { options, ifMatch, body, file, asks } = verb;
  return [
    ...options.flatMap(({ name, in: place, isRequired, choices = [] }) =>
      place === 'query' && isRequired ? [`--${name}`, choices[0] ?? values[name] ?? 'acme/website'] : [],
    ),
    ...(ifMatch === 'required' ? ['--if-match', '*'] : []),
    ...(body === 'required' ? ['--input', join(home, 'body.json')] : []),
    ...(file === 'required' ? ['--file', join(home, 'dist/index.html')] : []),
    ...(asks ? ['--yes'] : []),
  ];
}

async function contextsFor(way: Way | 'closed'): Promise<void> {
  const issuer = `${way === 'closed' ? closed : origin}/issuer/${way}`;
  const credential = { kind: 'tokens', issuer, accessToken: 'token', refreshToken: 'token', expiresAt: 0 };
  const servers = { here: { origin, credential } };
  await writeFile(join(home, 'config/postern/contexts.json'), JSON.stringify({ current: null, servers }), {
    mode: 0o600,
  });
}

const ofSignIn = ['login', 'logout'];

function needsContexts(words: string): boolean {
  return ofSignIn.includes(words) || words.startsWith('context ');
}

/** The exit codes of one command, over every way that a server can answer. */
async function codesOf(command: Command): Promise<Set<number>> {
  const path = pathOf(command).split(' ').slice(1);
  const words = path.join(' ');
  const codes = new Set<number>();
  const ways: readonly (Way | 'closed')[] = [
    'done',
    'error',
    'absent',
    'refused',
    'limited',
    'conflict',
    'closed',
  ];
  const isWatching = command.options.some(({ long }) => long === '--timeout');
  for (const way of isWatching ? [...ways, 'building' as const] : ways) {
    if (needsContexts(words)) await contextsFor(way);
    const base = way === 'closed' ? closed : origin;
    const args = command.registeredArguments
      .filter(({ required }) => required)
      .map((argument) => (argument.name() === 'URL' ? base : (values[argument.name()] ?? 'shop')));
    if (words === 'context use') args[0] = 'here';
    if (words === 'api') args[1] = '/sites';
    const signIn: Readonly<Record<string, string[]>> = {
      login: [base, '--device', '--issuer', `${base}/issuer/${way}`],
      logout: ['--context', 'here'],
    };
    // A person signs in only at a terminal.
    const io = { ...ioFor(way), canAsk: words === 'login' };
    codes.add(await run([...path, ...args, ...(signIn[words] ?? optionsOf(words))], io));
  }
  codes.add(await run([...path, '--no-such-option'], ioFor('done')));
  if (needsContexts(words)) await rm(join(home, 'config/postern/contexts.json'));
  return codes;
}

test('docs/reference/cli-exit-codes.md has the observed exit codes of every verb', async () => {
  const seen = new Map<string, Set<number>>();
  for (const command of leavesOf(createProgram(ioFor('done'))))
    seen.set(pathOf(command), await codesOf(command));
  for (const { name, callers } of verbs) {
    const codes = [...(seen.get(`postern ${name}`) ?? [])].toSorted((a, b) => a - b);
    expect({ name, callers, codes }).toEqual({ name, callers, codes: [0, 1, 2, 3, 4, 5, 6, 7] });
  }
  expect(seen.get('postern watch')).toContain(8);
  for (const word of ofSignIn) expect(seen.get(`postern ${word}`)).toContain(4);
  await expect(pageOf(seen)).toMatchFileSnapshot('../../docs/reference/cli-exit-codes.md');
});

function pageOf(seen: ReadonlyMap<string, ReadonlySet<number>>): string {
  const codes = [0, 1, 2, 3, 4, 5, 6, 7, 8];
  const rows = [...seen].map(
    ([path, own]) => `| \`${path}\` | ${codes.map((code) => (own.has(code) ? code : '–')).join(' | ')} |`,
  );
  return `# Exit codes of each command

<!-- Written by \`npm run test:cli -- test/cli/exit-codes.test.ts -u\`; edits are lost. -->

What each command of the [command line](cli.md) ended with in a test, against a server that did what was asked, had an error, and answered 404, 401, 429 and 409;
against none; with an unknown option; and with a deploy that did not end. [What the codes mean](cli.md#exit-codes).

| Command | ${codes.join(' | ')} |
|---|${codes.map(() => '---').join('|')}|
${rows.join('\n')}
`;
}
