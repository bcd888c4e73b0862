import { describe, expect, test } from 'vitest';
import { maxRulesBytes, parseHeaders } from './site-rules.ts';

/** What `/*` with this one header comes to. */
const written = (name: string, value = 'x') => parseHeaders(`/*\n  ${name}: ${value}\n`);
const headersIn = (text: string) => parseHeaders(text).rules.flatMap(({ headers }) => headers);

const allowed = {
  'Content-Security-Policy': 'x',
  'Content-Language': 'x',
  'X-Robots-Tag': 'x',
  'Permissions-Policy': 'fullscreen=()',
  'Referrer-Policy': 'no-referrer',
};

/** Taken with these values and no other: each isolates or tightens the site. */
const narrow: Readonly<Record<string, readonly string[]>> = {
  'X-Frame-Options': ['DENY', 'SAMEORIGIN', 'deny'],
  'Cross-Origin-Opener-Policy': ['same-origin', 'same-origin-allow-popups', 'noopener-allow-popups'],
  'Cross-Origin-Embedder-Policy': ['require-corp', 'credentialless'],
  'Cross-Origin-Resource-Policy': ['same-origin', 'same-site'],
  'X-Permitted-Cross-Domain-Policies': ['none'],
  'Access-Control-Allow-Origin': ['*'],
};
/** The gateway sends them with every file. */
const sentAnyway = { 'X-Content-Type-Options': 'nosniff', 'Origin-Agent-Cluster': '?1' };
const loose =
  'x|ALLOWALL|ALLOW-FROM https://evil.example|unsafe-none|cross-origin|all|?0||null|https://evil.example'
    .concat('|*, *|DENY, SAMEORIGIN|sniff|same-origin; report-to="x"')
    .split('|');

const forbidden: Readonly<Record<string, readonly string[]>> = {
  'the browser’s state for the origin, and for its neighbours': [
    'Set-Cookie',
    'Set-Cookie2',
    'Cookie',
    'Cookie2',
    'Clear-Site-Data',
    'Service-Worker-Allowed',
    'Service-Worker',
    'Strict-Transport-Security',
    'Public-Key-Pins',
    'Expect-CT',
    'Alt-Svc',
    'Alt-Used',
    'Accept-CH',
    'Critical-CH',
    'Accept-CH-Lifetime',
    'Supports-Loading-Mode',
    'Speculation-Rules',
    'No-Vary-Search',
    'Set-Login',
    'Activate-Storage-Access',
    'Observe-Browsing-Topics',
    'Attribution-Reporting-Register-Source',
    'Use-As-Dictionary',
    'Available-Dictionary',
  ],
  'who may read the answer': [
    'Access-Control-Allow-Credentials',
    'Access-Control-Allow-Headers',
    'Access-Control-Allow-Methods',
    'Access-Control-Allow-Private-Network',
    'Access-Control-Expose-Headers',
    'Access-Control-Max-Age',
    'Access-Control-Request-Headers',
    'Access-Control-Request-Method',
    'Cross-Origin-Opener-Policy-Report-Only',
    'Cross-Origin-Embedder-Policy-Report-Only',
    'Timing-Allow-Origin',
  ],
  'what the bytes are and how long they are': [
    'Content-Type',
    'Content-Length',
    'Content-Encoding',
    'Content-Location',
    'Content-Range',
    'Content-MD5',
    'Content-Disposition',
    'Content-DPR',
    'Content-Digest',
    'Repr-Digest',
    'Digest',
    'X-Download-Options',
    'X-UA-Compatible',
    'X-XSS-Protection',
    'Accept-Ranges',
    'SourceMap',
    'X-SourceMap',
  ],
  'where the browser goes next, and whom it tells': [
    'Location',
    'Refresh',
    'Link',
    'Content-Base',
    'Report-To',
    'Reporting-Endpoints',
    'NEL',
    'Content-Security-Policy-Report-Only',
    'Permissions-Policy-Report-Only',
    'Feature-Policy',
    'Document-Policy',
    'Require-Document-Policy',
    'X-DNS-Prefetch-Control',
    'Server-Timing',
  ],
  'caches and proxies in front': [
    'Cache-Control',
    'CDN-Cache-Control',
    'Surrogate-Control',
    'Surrogate-Key',
    'Cache-Tag',
    'Expires',
    'Pragma',
    'Age',
    'Vary',
    'ETag',
    'Last-Modified',
    'Date',
    'Warning',
    'X-Accel-Redirect',
    'X-Sendfile',
    'X-Accel-Buffering',
    'X-Accel-Expires',
    'X-Lighttpd-Send-File',
    'X-Reproxy-URL',
    'X-Varnish',
    'Via',
    'X-Forwarded-Host',
    'X-Forwarded-For',
    'X-Original-URL',
    'X-Rewrite-URL',
    'Forwarded',
    'Host',
    'Status',
  ],
  'the connection, and who signs in': [
    'Connection',
    'Keep-Alive',
    'Proxy-Connection',
    'Transfer-Encoding',
    'TE',
    'Trailer',
    'Upgrade',
    'HTTP2-Settings',
    'WWW-Authenticate',
    'Proxy-Authenticate',
    'Authorization',
    'Proxy-Authorization',
    'Authentication-Info',
    'Retry-After',
    'Allow',
    'Server',
    'X-Powered-By',
    'Sec-WebSocket-Accept',
    'X-Request-Id',
    'X-Postern-Owner',
    'X-Anything',
    'constructor',
    '__proto__',
  ],
};

const spellingsOf = (name: string) => [
  `  ${name}: x`,
  `\t${name.toLowerCase()}: x`,
  ` ${name.toUpperCase()}:x`,
  `  ${name} : x`,
  `  ${name}\t: x`,
  `  :${name}: x`,
  `  "${name}": x`,
  `  X-Robots-Tag\u00a0: x, ${name}: x`,
];

describe('T45 headers that an author may not set', () => {
  test('five can be set, in any case of letters', () => {
    for (const [name, value] of Object.entries(allowed)) {
      for (const spelled of [name, name.toLowerCase(), name.toUpperCase()])
        expect(written(spelled, value)).toMatchObject({
          problems: [],
          rules: [{ headers: [[name.toLowerCase(), value]] }],
        });
    }
  });

  test('a header that isolates or tightens the site is taken, with no value that loosens it', () => {
    for (const [name, values] of Object.entries(narrow)) {
      for (const value of values)
        expect(written(name, value).rules).toMatchObject([{ headers: [[name.toLowerCase(), value]] }]);
      for (const value of loose) {
        const { rules, problems } = written(name, value);
        expect([name, value, rules[0]?.headers, problems.length]).toEqual([name, value, [], 1]);
      }
    }
    for (const [name, value] of Object.entries(sentAnyway)) {
      expect(written(name, value)).toMatchObject({ rules: [{ headers: [] }], problems: [] });
      for (const wrong of loose) expect(written(name, wrong).problems).toHaveLength(1);
    }
  });

  test('Access-Control-Allow-Origin is named as a header of public sites', () => {
    expect(written('Access-Control-Allow-Origin', '*').problems).toEqual([
      { line: 2, problem: expect.stringContaining('which only public sites send'), onlyPrivate: true },
    ]);
  });

  test('headers below a path that is not applied belong to no other path', () => {
    const { rules, problems } = parseHeaders(
      '/docs/*\n  X-Robots-Tag: none\nhttps://elsewhere.example/*\n  Content-Language: de\n',
    );
    expect(rules.map(({ headers }) => headers)).toEqual([[['x-robots-tag', 'none']]]);
    expect(problems.map(({ line }) => line)).toEqual([3]);
  });

  test.each(Object.entries(forbidden))('none of %s, however it is written', (_what, names) => {
    for (const name of names) {
      for (const line of spellingsOf(name)) {
        const { rules, problems } = parseHeaders(`/*\n${line}\n  X-Robots-Tag: none\n`);
        expect([line, problems.map((one) => one.line)]).toEqual([line, [2]]);
        expect(rules.flatMap(({ headers }) => headers)).toEqual([['x-robots-tag', 'none']]);
      }
      expect(written(name).problems[0]?.problem).toContain(`sets ${name.toLowerCase()}; only`);
    }
  });

  test('a line that is no header, or belongs to no path, is refused', () => {
    for (const line of ['  X-Robots-Tag', '  : x', '  X Robots Tag: x', `  ${'x'.repeat(61)}: x`, '  ü: x'])
      expect([line, parseHeaders(`/*\n${line}`).problems.length]).toEqual([line, 1]);
    expect(parseHeaders('  X-Robots-Tag: none\n').problems).toHaveLength(1);
    expect(parseHeaders('https://evil.example/*\n  X-Robots-Tag: none\n').rules).toEqual([]);
    expect(parseHeaders('https://evil.example/*\n').problems).toHaveLength(1);
  });
});

describe('T45 values that would end a header, or fill it', () => {
  test('a line break in a value begins a line, which is judged like every other', () => {
    for (const end of ['\r', '\n', '\r\n', '\n\r']) {
      for (const next of ['Set-Cookie: a=b', '  Set-Cookie: a=b', '\tSet-Cookie: a=b']) {
        const { problems, rules } = parseHeaders(`/*\n  X-Robots-Tag: none${end}${next}\n`);
        expect([end, next, problems.length]).toEqual([end, next, 1]);
        expect(rules[0]?.headers).toEqual([['x-robots-tag', 'none']]);
      }
    }
  });

  test('a value holds printable ASCII and nothing else', () => {
    const endsLine = new Set([0x0a, 0x0d]);
    const codes = [...Array(256).keys(), 0x85, 0x2028, 0x2029, 0x010d, 0x010a, 0x560a, 0xfeff, 0xd800];
    for (const code of codes) {
      const text = `a${String.fromCharCode(code)}Set-Cookie: a=b`;
      const isPrintable = code >= 0x20 && code <= 0x7e;
      const { problems, rules } = written('X-Robots-Tag', text);
      const taken = rules[0]?.headers.map(([, value]) => value);
      const expected = isPrintable ? [text] : endsLine.has(code) ? ['a'] : [];
      expect([code, problems.length, taken]).toEqual([code, isPrintable ? 0 : 1, expected]);
    }
    // Encoded, they are letters like others.
    expect(headersIn('/*\n  X-Robots-Tag: a%0d%0aSet-Cookie: a=b')).toEqual([
      ['x-robots-tag', 'a%0d%0aSet-Cookie: a=b'],
    ]);
  });

  test('a value of 1 to 2,000 characters, and one of 64 KiB is refused', () => {
    for (const [length, problems] of [
      [0, 1],
      [1, 0],
      [2_000, 0],
      [2_001, 1],
      [maxRulesBytes, 1],
    ] as const) {
      const found = written('Content-Security-Policy', 'x'.repeat(length));
      expect([length, found.problems.length]).toEqual([length, problems]);
      expect(found.rules[0]?.headers.length).toBe(1 - problems);
    }
  });
});
