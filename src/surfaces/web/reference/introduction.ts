import type { Scope } from '../../../core/scopes.ts';
import { changesPerMinute } from '../../../features/rate-limit/change-limit.ts';
import type { OpenApi } from '../openapi/types.ts';
import { type Html, html } from '../html.ts';
import { inline, json, prose } from './prose.ts';

/** Text that a reader needs once, before the first operation. */
export function introduction(document: OpenApi): Html {
  const origin = document.servers[0]?.url ?? '';
  const schemes = document.components.securitySchemes;
  const keyForm = String(schemes['personalKey']?.['bearerFormat'] ?? 'app_pat_…').replace('…', '••••');
  return html`<section id="introduction">
<h1>${document.info.title}</h1>
<p class="lead">${document.info.summary}</p>
<p class="base"><span>Base address</span><code>${origin}/api/v2</code></p>
${prose(document.info.description)}
<p>The same facts for programs: <a href="/api/v2/openapi.json">OpenAPI 3.1</a>.</p>
</section>

<section class="group" id="authentication">
<h2>Authentication</h2>
<p>Send exactly one credential. Postern refuses two credentials, and a key anywhere but in the Authorization header.</p>
<div class="operation"><div>
<div class="cards">${Object.entries(schemes).map(
    ([name, scheme]) =>
      html`<div class="card"><h3>${titles[name] ?? name}</h3><p>${inline(scheme['description'] ?? '')}</p></div>`,
  )}</div>
<h3 id="access-tokens">Getting an access token</h3>
<p>A program that a person starts signs that person in with OAuth 2.0 as the public client <code>postern-cli</code>, which has no secret: by a device code (RFC 8628), or by a redirect to <code>http://127.0.0.1:PORT/callback</code> with PKCE <code>S256</code>. The issuer is <code>${origin}/identity</code>; its endpoints are listed at <a href="/identity/.well-known/openid-configuration">/identity/.well-known/openid-configuration</a>:</p>
<div class="scroll"><table class="stack"><caption>Endpoints for access tokens</caption>
<thead><tr><th scope="col">Endpoint</th><th scope="col">For</th></tr></thead>
<tbody>${endpoints.map(
    ([path, purpose]) =>
      html`<tr><td><code class="field">/identity${path}</code></td><td>${purpose}</td></tr>`,
  )}</tbody></table></div>
<p>An access token lasts five minutes. With the scope <code>offline_access</code>, the program also gets a refresh token. Each exchange returns its successor. It ends after thirty days without use, or after sixty days in all. The redirect needs <code>prompt=consent</code> for it. People see such a program among their connected clients and disconnect it there.</p>
</div>
<div class="panels"><div class="panel"><h4>Ask who you are</h4><pre>curl '${origin}/api/v2/auth/context' \\
  -H "Authorization: Bearer $POSTERN_KEY"

<b class="n"># POSTERN_KEY holds ${keyForm}</b></pre></div>
<div class="panel" id="session-jar"><h4>A session for curl</h4><pre>form=$(curl -sL -c jar -b jar -o /dev/null \\
  -w '%{url_effective}' '${origin}/auth/login')
printf %s "$PASSWORD" | curl -sL -c jar -b jar -o /dev/null \\
  -H 'Origin: ${origin}' -d decision=sign-in \\
  --data-urlencode "email=$EMAIL" \\
  --data-urlencode password@- "$form"

<b class="n"># EMAIL and PASSWORD hold yours. This shows who you are:</b>
curl -b jar '${origin}/api/v2/auth/context'</pre>
<p class="note">Only a signed-in person can manage keys. In a browser, the cookie of the web app is the session; here, curl stores it in the file <code>jar</code>. Remove the file when you are done.</p></div></div></div>
</section>

<section class="group" id="scopes">
<h2>Scopes</h2>
<p>A key can do only what its scopes allow. Write includes read of the same resource, never of another.</p>
<div class="scroll"><table class="stack"><caption>Scopes</caption>
<thead><tr><th scope="col">Scope</th><th scope="col">Permits</th></tr></thead>
<tbody>${Object.entries(scopes).map(
    ([name, text]) => html`<tr><td><code class="field">${name}</code></td><td>${text}</td></tr>`,
  )}</tbody></table></div>
</section>

<section class="group" id="answers">
<h2>Responses</h2>
<div class="operation"><div>
<p>Success and failure have the same shape. Decide by the status and <code>error.code</code>; messages are for people and may change. The <a href="#errors">error codes</a> are explained below.</p>
<p>Include <code>request_id</code> when you report a problem. It is also in the <code>x-request-id</code> header.</p>
<p>Lists that people page through accept <code>page</code> and <code>limit</code>, and return <code>metadata.pagination</code> with <code>current</code>, <code>total</code> (pages), <code>items</code> (rows) and <code>limit</code>. Growing streams, such as the audit log, accept <code>cursor</code> and return <code>nextCursor</code>; null means the end.</p>
<p>Documents with an <code>ETag</code> change only with <code>If-Match</code>, so that nobody overwrites a change that they have not read.</p>
</div>
<div class="panels"><div class="panel"><h4><span>A refusal</span><span>403</span></h4><pre>${json(
    document.components.examples['forbidden_scope']?.value ??
      Object.values(document.components.examples)[0]?.value,
  )}</pre></div></div></div>
</section>

<section class="group" id="rate-limit">
<h2>Rate limit</h2>
<p>Postern counts requests with keys per owner: all personal keys of one person together, each service key by itself. The limit holds in <em>any</em> 60 seconds. Every response to a key has <code>RateLimit-Policy</code> and <code>RateLimit</code>. Beyond the limit, the response is <a href="#rate_limited">429</a> with an exact <code>Retry-After</code>. Requests that Postern refuses for the limit do not count.</p>
<p>People, in a browser or with an access token, may read without a limit. They may make ${String(changesPerMinute)} changes in any 60 seconds, all their sessions and tokens together; beyond that, the response is the same 429. Postern never refuses to revoke a key because of this limit.</p>
</section>`;
}

const endpoints = [
  ['/device/auth', 'POST: start the device flow.'],
  ['/auth', 'In a browser: start the redirect flow.'],
  ['/token', 'POST: exchange a code, refresh, or poll whether the person allowed the device.'],
  ['/token/revocation', 'POST: revoke a token, which ends the connection.'],
  ['/me', 'GET with an access token that has openid: the identity of the person.'],
] as const;

const titles: Readonly<Record<string, string>> = {
  sessionCookie: 'Browser session',
  personalKey: 'Personal key',
  serviceKey: 'Service key',
  accessToken: 'Access token',
};

const scopes: Readonly<Record<Scope, string>> = {
  'env:read': 'Read Environments and Builds.',
  'env:write': 'Create or change Environments and Builds; includes env:read.',
  'sites:read': 'Read public sites and your own sites.',
  'sites:write': 'Upload, replace, extend or delete your own sites; includes sites:read.',
  'repos:read': 'Read repository information.',
  'repos:write': 'Change supported repository configuration; includes repos:read.',
  'env:admin': 'Reserved. Only imported service keys hold it, and it permits nothing new.',
};
