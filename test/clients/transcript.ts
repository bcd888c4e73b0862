import type { Exchange } from './recorder.ts';

/** One client of the transcript: its title, and how its requests are known. */
export type Speaker = { readonly title: string; readonly isSender: (exchange: Exchange) => boolean };

type Replacements = readonly (readonly [from: string | RegExp, to: string])[];

/** docs/reference/mcp-transcript.md: what each client sent and got, with fixed words for what differs from run to run. */
export function transcriptPage(
  exchanges: readonly Exchange[],
  speakers: readonly Speaker[],
  replacements: Replacements,
): string {
  const sections = speakers.map(({ title, isSender }) => {
    const own = exchanges.filter((exchange) => isOfProtocol(exchange) && isSender(exchange));
    const ids = own.flatMap(({ path, answer }) =>
      path === '/identity/reg' ? [String(parsed(answer)['client_id'])] : [],
    );
    const signIns = exchanges.filter(
      ({ path }) => path.startsWith('/identity/auth?') && ids.includes(queryOf(path)['client_id'] ?? ''),
    );
    const mine = exchanges.filter((exchange) => own.includes(exchange) || signIns.includes(exchange));
    return `## ${title}\n\n\`\`\`text\n${inOrder(mine).map(conversation).join('\n\n')}\n\`\`\``;
  });
  const text = replacements.reduce((page, [from, to]) => page.replaceAll(from, to), sections.join('\n\n'));
  return `# Two agents at once, recorded

<!-- Written by \`npm run test:clients -- test/clients/agents.test.ts -u\`; edits are lost. -->

What two clients on independent SDKs sent to a running server, and what they got, each in its own order. They worked at once: the
test lets no call of \`get_context\` pass before both clients have sent theirs. [The endpoint and its tools](mcp.md).

Fixed words replace addresses, ids, times, codes and tokens: \`<client>\`, \`<time>\`. \`…\` is in place of what a reader can look up or has just read.
A request begins with \`→\`, its answer with \`←\`. The person opens \`/identity/auth\` in a browser, and allows the client there.

${text}
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

function conversation({ method, path, headers, body, status, answerHeaders, answer }: Exchange): string {
  const [address = ''] = path.split('?');
  const sent = [
    `→ ${method} ${address}`,
    ...header('Authorization', headers.authorization?.replace(/ .+/, ' <access token>')),
    ...header('MCP-Protocol-Version', headers['mcp-protocol-version']),
    ...content(address === path ? body : queryOf(path), headers['content-type']),
  ];
  const got = [
    `← ${status}`,
    ...header('WWW-Authenticate', answerHeaders['www-authenticate']),
    ...(status === 303 ? [] : content(answer, answerHeaders['content-type'])),
  ];
  return [...sent, ...got].join('\n');
}

function header(name: string, value: string | string[] | undefined): string[] {
  return value === undefined ? [] : [`  ${name}: ${String(value)}`];
}

function content(body: string | object, type = ''): string[] {
  if (body === '') return [];
  const value = typeof body === 'object' ? body : valueOf(body, type);
  return printed(shortened(value), '  ').split('\n');
}

function valueOf(body: string, type: string): unknown {
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

/** Secrets and random values, by their names. */
const words: Readonly<Record<string, string>> = {
  access_token: '<access token>',
  refresh_token: '<refresh token>',
  code: '<code>',
  code_challenge: '<challenge>',
  code_verifier: '<verifier>',
  request_id: '<request>',
  state: '<state>',
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

function shortened(value: unknown, name = ''): unknown {
  if (typeof value === 'string') {
    const word = words[name];
    // A code of an error is in lower case, a code of a sign-in is random.
    return word === undefined || /^[a-z_]+$/.test(value) ? value : word;
  }
  if (Array.isArray(value)) return value.map((one) => shortened(one));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value);
  const shown = known.find(({ mark }) => mark in value)?.fields;
  const hasStructure = 'structuredContent' in value;
  const kept = entries
    .filter(([key]) => shown?.includes(key) ?? true)
    .map(([key, inner]) => {
      if (key === '_meta' || (key === 'content' && hasStructure)) return [key, '…'];
      return [key, shortened(inner, key)];
    });
  return Object.fromEntries(kept.length < entries.length ? [...kept, ['…', '…']] : kept);
}

const width = 118;
const omitted = /"…"(?::\s*"…")?/g;

/** JSON on one line where it fits, or else with a line for each entry. */
function printed(value: unknown, indent: string, before = ''): string {
  const line = `${indent}${before}${JSON.stringify(value)}`.replaceAll(omitted, '…');
  if (typeof value !== 'object' || value === null || line.length <= width) return line;
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  const inner = Object.entries(value).map(([key, one]) => {
    if (key === '…') return `${indent}  …`;
    return printed(one, `${indent}  `, Array.isArray(value) ? '' : `${JSON.stringify(key)}: `);
  });
  return `${indent}${before}${open}\n${inner.join(',\n')}\n${indent}${close}`;
}
