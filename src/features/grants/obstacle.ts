import { getDomain } from 'tldts';

/**
 * Whether this installation's addresses can keep a private site apart from the rest (private-access.md 2.1): https on
 * both, and a content domain of its own. Exempt, for trying it out: both on loopback, where config.ts keeps the
 * listeners too, with the built-in provider. No I/O.
 */
export type Addresses = {
  readonly uiUrl: string;
  readonly contentUrl: string;
  /** SITES_ALLOW_SHARED_APEX */
  readonly allowSharedApex: boolean;
  /** Another provider keeps the accounts: this is no trying out. A gateway does not know, and is not asked. */
  readonly hasOtherProvider?: boolean;
};

/** A sentence for people; null when private sites can be had. */
export function obstacleOf({
  uiUrl,
  contentUrl,
  allowSharedApex,
  hasOtherProvider,
}: Addresses): string | null {
  const [ui, content] = [new URL(uiUrl), new URL(contentUrl)];
  const plain = [ui, content].filter(({ protocol }) => protocol === 'http:');
  if (plain.length === 2) {
    return hasOtherProvider === true
      ? 'Private sites need HTTPS on both addresses; without it they are for trying out, with the built-in identity provider.'
      : null;
  }
  if (plain.length === 1) {
    const name = ui.protocol === 'http:' ? 'SERVICE_UI_URL' : 'SITES_CONTENT_URL';
    return `Private sites need HTTPS on both addresses, and ${name} is http.`;
  }
  if (isAddress(content.hostname)) {
    return 'Private sites need a host of their own each, and SITES_CONTENT_URL is an address without names.';
  }
  if (!allowSharedApex && isShared({ uiUrl, contentUrl })) {
    return 'Private sites need a content domain of its own: SERVICE_UI_URL and SITES_CONTENT_URL share a registrable domain, and SITES_ALLOW_SHARED_APEX is not set.';
  }
  return null;
}

/**
 * True when browsers take a content host and the UI for one site. A content domain that is on the Public Suffix List
 * itself is separate: each label in front of it is a registrable domain of its own.
 */
export function isShared({ uiUrl, contentUrl }: Pick<Addresses, 'uiUrl' | 'contentUrl'>): boolean {
  const ui = new URL(uiUrl).hostname;
  const site = `a-label.${new URL(contentUrl).hostname}`;
  const registrable = (host: string) => getDomain(host, { allowPrivateDomains: true });
  const [uiDomain, siteDomain] = [registrable(ui), registrable(site)];
  // A name of one word, such as localhost, counts as a public suffix: what lies below it is another site.
  return uiDomain !== null && uiDomain === siteDomain;
}

function isAddress(hostname: string): boolean {
  return hostname.startsWith('[') || /^\d+(?:\.\d+){3}$/.test(hostname);
}
