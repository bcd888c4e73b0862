import type { FastifyInstance } from 'fastify';
import { grantableScopes } from '../../../core/scopes.ts';
import type { Identity } from '../../../features/identity/identity.ts';
import { findCredential } from '../credential.ts';
import type { Gate } from '../gate.ts';
import { preparePages, sendPage } from './forms.ts';
import { homeScript } from './home-script.ts';
import { html } from './html.ts';
import { type Page, page } from './layout.ts';
import { howToSetUp } from './messages.ts';
import { moveToOwnHost } from './own-host.ts';
import { scopeWords } from './scope-words.ts';

/**
 * The start page: sign in, make a key, see and revoke one's keys, disconnect clients. Small on purpose; the web app of its own takes
 * this address over and does the rest.
 */
export function homePage(deps: {
  identity: Pick<Identity, 'sessions' | 'firstAdministrator'>;
  uiOrigin: string;
  gate: Pick<Gate, 'denied'>;
}): (scope: FastifyInstance) => void {
  const { identity, uiOrigin } = deps;
  return (scope) => {
    preparePages(scope, deps.gate);
    moveToOwnHost(scope, uiOrigin);
    scope.get(
      '/',
      { config: { access: { callers: 'anyone', identity: 'none' } } },
      async (request, reply) => {
        const credential = findCredential(request.raw);
        const found =
          credential.kind === 'session'
            ? await identity.sessions.authenticate(credential.value)
            : { kind: 'none' as const };
        if (found.kind === 'active') return sendPage(reply, signedIn(found.session.user.name, uiOrigin));
        return sendPage(reply, welcome(await identity.firstAdministrator.hasAdministrator()));
      },
    );
  };
}

function welcome(isSetUp: boolean): Page {
  const next = isSetUp ? html`<a class="button" href="/auth/login?returnTo=/">Sign in</a>` : howToSetUp;
  const body = html`<h1>API keys people can trust</h1>
<p class="lead">Scoped, expiring, revocable at once, audited.</p>
${next}
<a class="button quiet" href="/api/v2/docs">API reference</a>`;
  return page({ title: 'Welcome', body });
}

/** What the policy allows is filled in by the script; the page itself knows no lifetime and no limit. */
function signedIn(name: string, uiOrigin: string): Page {
  const body = html`<h1>Hello, ${name}</h1>
<p class="lead">Make a key for a script. <a href="/api/v2/docs">API reference</a></p>
<p class="problem" id="problem" role="alert" tabindex="-1" hidden></p>
<noscript><p class="problem">This page needs JavaScript to create keys.</p></noscript>
<div class="made" id="made" hidden>
<label>Your new key
<span class="hint">It is shown this once. Keep it in a secret store.</span>
<textarea id="value" rows="2" readonly spellcheck="false" autocomplete="off"></textarea>
</label>
<button type="button" id="copy">Copy</button>
<p id="copied" role="status"></p>
<p>Try it, with the value in the variable <code>KEY</code>:</p>
<pre class="code" tabindex="0" aria-label="Command">curl ${uiOrigin}/api/v2/auth/context \\
  -H "Authorization: Bearer $KEY"</pre>
<button type="button" class="quiet" id="stored">I have stored it</button>
</div>
<form id="create">
<p class="problem" id="refused" hidden></p>
<label>Name
<span class="hint">Who uses it, and what for.</span>
<input name="name" required maxlength="100" autocomplete="off" placeholder="deploy from CI">
</label>
<fieldset><legend>Scopes <span class="hint">What the key may do; never more than you can.</span></legend><div class="choices one">
${grantableScopes.map(
  (scope) =>
    html`<label><input type="checkbox" name="scope" value="${scope}"><span>${scope}<small>${scopeWords[scope]}</small></span></label>`,
)}
</div></fieldset>
<p class="hint" id="everywhere" hidden></p>
<div id="which" hidden>
<label>Repositories
<select id="reach"></select>
</label>
<fieldset id="chosen" hidden><legend class="hint" id="most"></legend><div class="choices wide" id="names"></div></fieldset>
</div>
<label>Lifetime
<span class="hint" id="longest"></span>
<select name="ttl"></select>
</label>
<button id="make" disabled>Create key</button>
</form>
<section id="mine" tabindex="-1">
<h2>My keys <span class="hint" id="count"></span></h2>
<p class="hint" id="none" hidden>No keys yet.</p>
<ul class="keys" id="keys"></ul>
</section>
<section id="connected" tabindex="-1" hidden>
<h2>Connected clients</h2>
<p class="hint">Programs that can act for you while you are away.</p>
<ul class="keys" id="clients"></ul>
</section>
<form method="post" action="/auth/logout" id="leave"><button class="quiet">Sign out</button></form>`;
  return page({ title: 'My keys', body, script: homeScript, callsApi: true });
}
