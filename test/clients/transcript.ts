import type { Exchange } from './recorder.ts';

/** One client of the transcript: its title, and how its requests are known. */
export type Speaker = { readonly title: string; readonly isSender: (exchange: Exchange) => boolean };

type Replacements = readonly (readonly [from: string | RegExp, to: string])[];
/** A text with the fixed words. Lines are laid out afterwards, so that their lengths are the same in each run. */
type Plain = (text: string) => string;

/** docs/reference/mcp-transcript.md: what each client sent and got, with fixed words for what differs from run to run. */
export function transcriptPage(
  exchanges: readonly Exchange[],
  speakers: readonly Speaker[],
  replacements: Replacements,
): string {
  const plain: Plain = (text) =>
    replacements.reduce((replaced, [from, to]) => replaced.replaceAll(from, to), text);
  const sections = speakers.map(({ title, isSender }) => {
    const own = exchanges.filter((exchange) => isOfProtocol(exchange) && isSender(exchange));
    const ids = own.flatMap(({ path, answer }) =>
      path === '/identity/reg' ? [String(parsed(answer)['client_id'])] : [],
    );
    const signIns = exchanges.filter(
      ({ path }) => path.startsWith('/identity/auth?') && ids.includes(queryOf(path)['client_id'] ?? ''),
    );
    const mine = exchanges.filter((exchange) => own.includes(exchange) || signIns.includes(exchange));
    return `## ${title}\n\n\`\`\`text\n${inOrder(mine)
      .map((exchange) => conversation(exchange, plain))
      .join('\n\n')}\n\`\`\``;
  });
  return `# Two agents at once, recorded

<!-- Written by \`npm run test:clients -- test/clients/agents.test.ts -u\`; edits are lost. -->

What two clients on independent SDKs sent to a running server, and what they got, each in its own order. They worked at once: the
test lets no call of \`get_context\` pass before both clients have sent theirs. [The endpoint and its tools](mcp.md).

Fixed words replace addresses, ids, times, codes and tokens: \`<client>\`, \`<time>\`. \`…\` replaces what a reader can look up or has just read.
A request begins with \`→\`, its answer with \`←\`. The person opens \`/identity/auth\` in a browser, and allows the client there.

${sections.join('\n\n')}
`;
}

const programs = ['/mcp', '/identity/reg', '/identity/token'];
const isOfProtocol = ({ path }: Exchange) => programs.includes(path) || path.startsWith('/.well-known/');

/** A client may ask for a stream beside its next request; it is always placed where it was caused. */
function inOrder(exchanges: readonly Exchange[]): Exchange[] {
  const streams = exchanges.filter(({ method, path }) => method === 'GET' && path === '/mcp');
  return exchanges
    .filter((exchange) => !streams.includes(exchange))
    .flatMap((exchange) =>
      exchange.body.includes('"notifications/initialized"') ? [exchange, ...streams] : [exchange],
    );
}

function conversation(exchange: Exchange, plain: Plain): string {
  const { method, path, headers, body, status, answerHeaders, answer } = exchange;
  const [address = ''] = path.split('?');
  const content = (value: unknown) => printed(shortened(value, plain), '  ').split('\n');
  const header = (name: string, value: string | string[] | undefined) =>
    value === undefined ? [] : [`  ${name}: ${plain(String(value))}`];
  const sent = address === path ? valueOf(body, headers['content-type']) : queryOf(path);
  const got = status === 303 ? undefined : valueOf(answer, answerHeaders['content-type']);
  return [
    `→ ${method} ${address}`,
    ...header('Authorization', headers.authorization?.replace(/ .+/, ' <access token>')),
    ...header('MCP-Protocol-Version', headers['mcp-protocol-version']),
    ...(sent === undefined ? [] : content(sent)),
    `← ${status}`,
    ...header('WWW-Authenticate', answerHeaders['www-authenticate']),
    ...(got === undefined ? [] : content(got)),
  ].join('\n');
}

function valueOf(body: string, type = ''): unknown {
  if (body === '') return undefined;
  if (type.startsWith('application/x-www-form-urlencoded'))
    return Object.fromEntries(new URLSearchParams(body));
  return parsed(type.startsWith('text/event-stream') ? body.replace(/^event: message\ndata: /, '') : body);
}

function parsed(text: string): Record<string, unknown> {
  return JSON.parse(text);
}

function queryOf(path: string): Record<string, string> {
  return Object.fromEntries(new URL(path, 'http://localhost').searchParams);
}

/** Secrets, random values and versions, by their names. */
const words: Readonly<Record<string, string>> = {
  access_token: '<access token>',
  refresh_token: '<refresh token>',
  code: '<code>',
  code_challenge: '<challenge>',
  code_verifier: '<verifier>',
  request_id: '<request>',
  state: '<state>',
  version: '<version>',
};

/** Objects of which only these fields are shown. */
const known: readonly { readonly mark: string; readonly fields: readonly string[] }[] = [
  {
    mark: 'registration_endpoint',
    fields: [
      'issuer',
      'authorization_endpoint',
      'token_endpoint',
      'registration_endpoint',
      'code_challenge_methods_supported',
      'client_id_metadata_document_supported',
      'authorization_response_iss_parameter_supported',
    ],
  },
  { mark: 'inputSchema', fields: ['name'] },
];

function shortened(value: unknown, plain: Plain, name = ''): unknown {
  if (typeof value === 'string') {
    const word = words[name];
    // A code of an error is in lower case, a code of a sign-in is random.
    return word === undefined || /^[a-z_]+$/.test(value) ? plain(value) : word;
  }
  if (Array.isArray(value)) return value.map((one) => shortened(one, plain));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value);
  const shown = known.find(({ mark }) => mark in value)?.fields;
  const hasStructure = 'structuredContent' in value;
  const kept = entries
    .filter(([key]) => shown?.includes(key) ?? true)
    .map(([key, inner]) => {
      if (key === '_meta' || (key === 'content' && hasStructure)) return [key, '…'];
      return [key, shortened(inner, plain, key)];
    });
  return Object.fromEntries(kept.length < entries.length ? [...kept, ['…', '…']] : kept);
}

const width = 118;
const omitted = /"…"(?::\s*"…")?/g;

/** JSON in as few lines as fit, without quotes around what is left out. */
function printed(value: unknown, indent: string, before = ''): string {
  const line = `${indent}${before}${JSON.stringify(value)}`.replaceAll(omitted, '…');
  if (typeof value !== 'object' || value === null || line.length <= width) return line;
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  const inner = `${indent}  `;
  const entries = Object.entries(value).map(([key, one]) => {
    if (key === '…') return `${inner}…`;
    return printed(one, inner, Array.isArray(value) ? '' : `${JSON.stringify(key)}: `);
  });
  return `${indent}${before}${open}\n${packed(entries).join(',\n')}\n${indent}${close}`;
}

/** Entries that fit on one line together are on one. */
function packed(entries: readonly string[]): string[] {
  const lines: string[] = [];
  for (const entry of entries) {
    const joined = `${lines.at(-1) ?? ''}, ${entry.trimStart()}`;
    const fits = lines.length > 0 && !joined.includes('\n') && joined.length <= width;
    if (fits) lines[lines.length - 1] = joined;
    else lines.push(entry);
  }
  return lines;
}
