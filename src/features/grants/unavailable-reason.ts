import { getDomain } from 'tldts';

/**
 * Whether the addresses of this installation can isolate a private site from everything else (private-access.md 2.1).
 * This takes https on both addresses and a separate content domain. Exempt, for evaluation: both addresses on loopback,
 * where config/ also keeps the listeners, with the built-in provider. No I/O.
 */
export type Addresses = {
  readonly uiUrl: string;
  readonly contentUrl: string;
  /** SITES_ALLOW_SHARED_APEX */
  readonly allowSharedApex: boolean;
  /**
   * True when another provider manages the accounts; the loopback exemption then does not apply. A gateway does not
   * know this and leaves it out.
   */
  readonly hasOtherProvider?: boolean;
};

/** A sentence for people; null when private sites are available. */
export function unavailableReasonOf({
  uiUrl,
  contentUrl,
  allowSharedApex,
  hasOtherProvider,
}: Addresses): string | null {
  const [ui, content] = [new URL(uiUrl), new URL(contentUrl)];
  const plain = [ui, content].filter(({ protocol }) => protocol === 'http:');
  if (plain.length === 2) {
    return hasOtherProvider === true
      ? 'Private sites need HTTPS in SERVICE_UI_URL and SITES_CONTENT_URL. Only the built-in identity provider allows them without HTTPS, for trials.'
      : null;
  }
  if (plain.length === 1) {
    const name = ui.protocol === 'http:' ? 'SERVICE_UI_URL' : 'SITES_CONTENT_URL';
    return `Private sites need HTTPS in SERVICE_UI_URL and SITES_CONTENT_URL; ${name} uses http.`;
  }
  if (isAddress(content.hostname)) {
    return 'Each private site needs its own host name; SITES_CONTENT_URL has an IP address.';
  }
  if (!allowSharedApex && isShared({ uiUrl, contentUrl })) {
    return 'Private sites need a separate content domain. SERVICE_UI_URL and SITES_CONTENT_URL share a registrable domain, and SITES_ALLOW_SHARED_APEX is not set.';
  }
  return null;
}

/**
 * True when browsers treat a content host and the UI as the same site. A content domain that is itself on the Public
 * Suffix List is separate: each label in front of it is its own registrable domain.
 */
export function isShared({ uiUrl, contentUrl }: Pick<Addresses, 'uiUrl' | 'contentUrl'>): boolean {
  const ui = new URL(uiUrl).hostname;
  const site = `a-label.${new URL(contentUrl).hostname}`;
  const registrable = (host: string) => getDomain(host, { allowPrivateDomains: true });
  const [uiDomain, siteDomain] = [registrable(ui), registrable(site)];
  // A single-label name such as localhost counts as a public suffix, so a host below it is another site.
  return uiDomain !== null && uiDomain === siteDomain;
}

function isAddress(hostname: string): boolean {
  return hostname.startsWith('[') || /^\d+(?:\.\d+){3}$/.test(hostname);
}
