import type { AccessCheck, IssuedGrant } from '../../../features/grants/grants.ts';
import type { Site } from '../../../features/sites/sites.ts';
import { type Html, html } from './html.ts';
import { type Page, page } from './layout.ts';

/** Why a site opens for its owner or not, and who was let in: `GET /sites/{id}/access` for people. */
export type AccessView = {
  readonly site: Site;
  readonly checks: readonly AccessCheck[];
  readonly opens: boolean;
  /** Newest first. */
  readonly grants: readonly IssuedGrant[];
  /** Of all that are remembered. */
  readonly total: number;
};

export function siteAccessPage(view: AccessView): Page {
  const { site, checks, opens } = view;
  const whom = site.visibility === 'public' ? 'everybody' : 'you, its owner, and nobody else';
  const failed = checks.filter(({ passed }) => !passed).length;
  const body = html`<h1>${site.name}</h1>
<p class="lead">${opens ? `This site is ${site.visibility}. It opens for ${whom}.` : `It does not open now: ${failed === 1 ? 'one check fails' : `${failed} checks fail`}.`}</p>
<p><a class="${opens ? 'button' : 'button quiet'}" href="/s/${site.id}">Open the site</a></p>
<h2>What is checked</h2>
<ul class="facts checks">${checks.map(checkItem)}</ul>
${site.visibility === 'public' && view.total === 0 ? null : ledger(view)}
<p><a href="/">Go to the start page</a></p>`;
  return page({ title: `Access to ${site.name}`, body });
}

function checkItem({ passed, detail }: AccessCheck): Html {
  return passed
    ? html`<li><span class="mark" aria-hidden="true">✓</span><span>${detail}</span></li>`
    : html`<li class="failed"><span class="mark" aria-hidden="true">✗</span><span>${detail}</span></li>`;
}

function ledger({ site, grants, total }: AccessView): Html {
  const older = total - grants.length;
  return html`<h2>Who was let in <span class="hint">Times in UTC</span></h2>
${
  grants.length === 0
    ? html`<p>No browser within the last 30 days.</p>`
    : html`<ul class="facts">${grants.map(grantItem)}</ul>`
}
${older > 0 ? html`<p>${older} older: <code>GET /api/v2/sites/${site.id}/access?page=2</code> lists them.</p>` : null}
${site.visibility === 'private' && site.deletedAt === null ? endForm(site) : null}`;
}

function endForm({ id }: Site): Html {
  return html`<form method="post" action="/s/${id}/access">
<p>Puts every browser out at once. Whoever opens the link again is checked again. Signing out does not do this.</p>
<button class="quiet">End every grant</button>
</form>`;
}

function grantItem({ issuedAt, endsAt, isLive, address, agent }: IssuedGrant): Html {
  const where = [agent === null ? 'A browser' : browserWords(agent), address].filter((word) => word !== null);
  const until = clockTime(endsAt);
  return html`<li>${isLive ? html`<strong class="live">Live</strong>` : html`<strong>Ended</strong>`} ${where.join(', ')}
<small>${isoTime(issuedAt)}, ${isLive ? html`until ${until}` : html`ended ${until} at the latest`}</small></li>`;
}

function isoTime(ms: number): Html {
  const text = new Date(ms).toISOString();
  return html`<time datetime="${text}">${text.slice(0, 10)} ${text.slice(11, 19)}</time>`;
}

function clockTime(ms: number): Html {
  const text = new Date(ms).toISOString();
  return html`<time datetime="${text}">${text.slice(11, 19)}</time>`;
}

/** In the order of who pretends to be whom: Edge says that it is Chrome, and Chrome that it is Safari. */
const browsers = [
  [/\bEdg(?:A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:(?:Headless)?Chrome|CriOS)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
] as const;
const systems = [
  [/\bAndroid\b/, 'Android'],
  [/\b(?:iPhone|iPad)\b/, 'iOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
] as const;

/** What a browser says of itself, in short; of other clients their own words. */
function browserWords(agent: string): string {
  const name = browsers.find(([pattern]) => pattern.test(agent))?.[1];
  const system = systems.find(([pattern]) => pattern.test(agent))?.[1];
  if (name === undefined) return agent;
  return system === undefined ? name : `${name} on ${system}`;
}
