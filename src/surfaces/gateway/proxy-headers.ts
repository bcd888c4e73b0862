/**
 * Headers that a request to a process of an Environment, and its response, lose and get on the way (contract 9). Headers are lists
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

/**
 * Claims of a client about itself, its proxies and the framing of its body. The gateway sets these headers instead. A client may
 * name `Content-Length` in `Connection`. Without any framing the process would read the body as the next request.
 */
const claims = new Set([
  'forwarded',
  'x-real-ip',
  'x-original-url',
  'x-rewrite-url',
  'expect',
  'content-length',
]);

/** Last, because the last member of a name decides (RFC 9651 section 3.2). */
const passkeysOff = 'publickey-credentials-get=(), publickey-credentials-create=()';

const feature = '[*a-z][-_.*a-z0-9]*';
const item = String.raw`(?:[*A-Za-z][-!#$%&'*+.^_|~:/\w]*|"[ !#-\[\]-~]*")`;
const list = String.raw`\( *(?:${item}(?: +${item})*)? *\)`;
const member = `${feature}=(?:${list}|${item})(?:; *${feature}(?:=${item})?)*`;
/** What browsers can read. One member that they cannot read discards the whole header, including ours. */
const permissions = new RegExp(String.raw`^ *${member}(?:[ \t]*,[ \t]*${member})* *$`);

/** They concern the host as a whole, or its connections, which are ours; or the gateway sets them. */
const notFromTenants = new Set([
  'clear-site-data',
  'strict-transport-security',
  'alt-svc',
  'date',
  'nel',
  'report-to',
  'x-robots-tag',
]);

/** Commands to the proxy in front: nginx serves its internal files for X-Accel-Redirect, for instance. */
const toProxies = /^(?:x-(?:accel|sendfile|litespeed|reproxy|lighttpd)|edge-control|surrogate-)/;

/** What decides about caching, and what a service worker needs. */
const onlyWhenPublic = new Set([
  'cache-control',
  'expires',
  'pragma',
  'cdn-cache-control',
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
  const sent = ['Host', host];
  forEachKept(rawHeaders, (name, value, lower) => {
    if (claims.has(lower) || lower === 'host' || lower.startsWith('x-forwarded-')) return;
    const kept = lower === 'cookie' ? withoutOurCookies(value) : value;
    if (lower !== 'cookie' || kept !== '') sent.push(name, kept);
  });
  if (client !== null) sent.push('X-Forwarded-For', client);
  const [, port = isHttps ? '443' : '80'] = /:(\d+)$/.exec(host) ?? [];
  sent.push(
    'X-Forwarded-Host',
    host,
    'X-Forwarded-Proto',
    isHttps ? 'https' : 'http',
    'X-Forwarded-Port',
    port,
  );
  return sent;
}

/** `rawHeaders` of a process, for the client. */
export function answerHeaders(
  rawHeaders: readonly string[],
  { isPrivate, isHttps }: { isPrivate: boolean; isHttps: boolean },
  status: number,
): string[] {
  const sent: string[] = [];
  forEachKept(rawHeaders, (name, value, lower) => {
    if (notFromTenants.has(lower) || toProxies.test(lower)) return;
    if (lower === 'permissions-policy' && !permissions.test(value)) return;
    if (isPrivate && onlyWhenPublic.has(lower)) return;
    // RFC 9110 section 8.6: a 204 has no length.
    if (status === 204 && lower === 'content-length') return;
    const kept = lower === 'set-cookie' ? cookieOfTenant(value) : value;
    if (kept !== undefined) sent.push(name, kept);
  });
  // nginx passes on what it gets at once, and does not send X-Accel-Buffering on.
  sent.push('X-Robots-Tag', 'noindex', 'X-Accel-Buffering', 'no', 'Permissions-Policy', passkeysOff);
  if (isPrivate) sent.push('Cache-Control', 'private, no-store', 'CDN-Cache-Control', 'no-store');
  if (isHttps) sent.push('Strict-Transport-Security', 'max-age=31536000');
  return sent;
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

/** Passes over what concerns one connection, also the headers that `Connection` names (RFC 9110 section 7.6.1). */
function forEachKept(
  rawHeaders: readonly string[],
  take: (name: string, value: string, lower: string) => void,
): void {
  const lowers = rawHeaders.map((text, at) => (at % 2 === 0 ? text.toLowerCase() : ''));
  const named = rawHeaders.filter((_, at) => lowers[at - 1] === 'connection').join();
  const dropped =
    named === '' ? undefined : new Set(named.split(',').map((name) => name.trim().toLowerCase()));
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const lower = lowers[at] ?? '';
    if (!hopByHop.has(lower) && dropped?.has(lower) !== true)
      take(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '', lower);
  }
}
