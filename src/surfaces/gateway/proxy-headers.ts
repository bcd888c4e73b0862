/**
 * What a request to a process of an Environment, and its answer, lose and get on the way (contract 9). Headers are lists
 * of names and values in turn, as they were sent, because an object would join or drop repeated ones.
 */

/** All our cookies begin with this. None of them reaches a process, and none is set by one. */
const ourCookies = '__Host-postern_';

/** They concern one connection (RFC 9110 section 7.6.1). */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** What a client claims about itself or its proxies: the gateway says it instead. */
const claims = new Set(['forwarded', 'x-real-ip', 'x-original-url', 'x-rewrite-url', 'expect']);

/** They concern the host as a whole, or its connections, which are ours. */
const notFromTenants = new Set(['clear-site-data', 'strict-transport-security', 'alt-svc']);

/** What decides about caching, and what a service worker needs. */
const onlyWhenPublic = new Set([
  'cache-control',
  'expires',
  'pragma',
  'cdn-cache-control',
  'surrogate-control',
  'service-worker-allowed',
]);

export type Forwarded = {
  readonly host: string;
  readonly isHttps: boolean;
  /** The client's address. */
  readonly client: string | null;
};

/** `rawHeaders` of a client, for the process. */
export function requestHeaders(
  rawHeaders: readonly string[],
  { host, isHttps, client }: Forwarded,
): string[] {
  const dropped = connectionNames(rawHeaders);
  const kept = pairsOf(rawHeaders).flatMap(([name, value, lower]) => {
    if (dropped.has(lower) || hopByHop.has(lower) || claims.has(lower)) return [];
    if (lower === 'host' || lower.startsWith('x-forwarded-')) return [];
    if (lower !== 'cookie') return [name, value];
    const rest = withoutOurCookies(value);
    return rest === '' ? [] : [name, rest];
  });
  const { port } = new URL(`http://${host}`);
  return [
    'Host',
    host,
    ...kept,
    ...(client === null ? [] : ['X-Forwarded-For', client]),
    'X-Forwarded-Host',
    host,
    'X-Forwarded-Proto',
    isHttps ? 'https' : 'http',
    'X-Forwarded-Port',
    port === '' ? (isHttps ? '443' : '80') : port,
  ];
}

/** `rawHeaders` of a process, for the client. */
export function answerHeaders(
  rawHeaders: readonly string[],
  { isPrivate, isHttps }: { isPrivate: boolean; isHttps: boolean },
): string[] {
  const dropped = connectionNames(rawHeaders);
  const kept = pairsOf(rawHeaders).flatMap(([name, value, lower]) => {
    if (dropped.has(lower) || hopByHop.has(lower) || notFromTenants.has(lower)) return [];
    if (lower === 'x-robots-tag' || (isPrivate && onlyWhenPublic.has(lower))) return [];
    if (lower !== 'set-cookie') return [name, value];
    const cookie = cookieOfTenant(value);
    return cookie === undefined ? [] : [name, cookie];
  });
  return [
    ...kept,
    'X-Robots-Tag',
    'noindex',
    // nginx passes on what it gets at once, and does not send this header on.
    'X-Accel-Buffering',
    'no',
    ...(isPrivate ? ['Cache-Control', 'private, no-store', 'CDN-Cache-Control', 'no-store'] : []),
    ...(isHttps ? ['Strict-Transport-Security', 'max-age=31536000'] : []),
  ];
}

function withoutOurCookies(header: string): string {
  return header
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part !== '' && !isOurs(part))
    .join('; ');
}

/** Without `Domain`, so that it reaches no other host. Undefined for a cookie with one of our names. */
function cookieOfTenant(value: string): string | undefined {
  const [pair = '', ...attributes] = value.split(';');
  if (isOurs(pair.trim())) return undefined;
  return [pair, ...attributes.filter((one) => !/^\s*domain\s*(?:=|$)/i.test(one))].join(';');
}

/** Browsers compare the prefix `__Host-` without regard to case. */
function isOurs(pair: string): boolean {
  // A cookie without a name can hold the name of another in its value: browsers send it as if it were that one.
  return pair
    .replace(/^[=\s]+/, '')
    .toLowerCase()
    .startsWith(ourCookies.toLowerCase());
}

/** The headers that `Connection` names (RFC 9110 section 7.6.1). */
function connectionNames(rawHeaders: readonly string[]): ReadonlySet<string> {
  const named = pairsOf(rawHeaders).filter(([, , lower]) => lower === 'connection');
  return new Set(named.flatMap(([, value]) => value.split(',').map((name) => name.trim().toLowerCase())));
}

function pairsOf(rawHeaders: readonly string[]): (readonly [name: string, value: string, lower: string])[] {
  return rawHeaders.flatMap((name, at) =>
    at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? '', name.toLowerCase()] as const] : [],
  );
}
