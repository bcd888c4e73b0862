import { getDomain } from 'tldts';
import type { GrantKind } from './grant-kind.ts';

/**
 * Whether the addresses of this installation can isolate a private site or Environment from the web app
 * (private-access.md 2.1). This takes https on both addresses and a separate content domain. Exempt, for evaluation: both
 * addresses on loopback, where config/ also keeps the listeners, with the built-in provider. No I/O.
 */
export type Addresses = {
  readonly uiUrl: string;
  /** SITES_CONTENT_URL */
  readonly contentUrl: string;
  /** ENVIRONMENTS_CONTENT_URL; may be the same. */
  readonly environmentsContentUrl: string;
  /** SITES_ALLOW_SHARED_APEX */
  readonly allowSharedApex: boolean;
  /**
   * True when another provider manages the accounts; the loopback exemption then does not apply. A gateway does not
   * know this and leaves it out.
   */
  readonly hasOtherProvider?: boolean;
};

/** A sentence for people; null when private sites are available. */
export function unavailableReasonOf(addresses: Addresses, kind: GrantKind): string | null {
  const [ui, content] = [new URL(addresses.uiUrl), new URL(addresses[kind.contentUrl])];
  const { noun, contentSetting } = kind;
  const plain = [ui, content].filter(({ protocol }) => protocol === 'http:');
  if (plain.length === 2) {
    return addresses.hasOtherProvider === true
      ? `Private ${noun}s need HTTPS in SERVICE_UI_URL and ${contentSetting}. Only the built-in identity provider allows them without HTTPS, for trials.`
      : null;
  }
  if (plain.length === 1) {
    const name = ui.protocol === 'http:' ? 'SERVICE_UI_URL' : contentSetting;
    return `Private ${noun}s need HTTPS in SERVICE_UI_URL and ${contentSetting}; ${name} uses http.`;
  }
  if (isAddress(content.hostname)) {
    return `Each private ${noun} needs its own host name; ${contentSetting} has an IP address.`;
  }
  if (!addresses.allowSharedApex && isShared(addresses, kind)) {
    return `Private ${noun}s need a separate content domain. SERVICE_UI_URL and ${contentSetting} share a registrable domain, and SITES_ALLOW_SHARED_APEX is not set.`;
  }
  return null;
}

/**
 * True when browsers treat a content host and the UI as the same site. A content domain that is itself on the Public
 * Suffix List is separate: each label in front of it is its own registrable domain.
 */
export function isShared(
  addresses: Pick<Addresses, 'uiUrl' | GrantKind['contentUrl']>,
  kind: Pick<GrantKind, 'contentUrl'>,
): boolean {
  const ui = new URL(addresses.uiUrl).hostname;
  const site = `a-label.${new URL(addresses[kind.contentUrl]).hostname}`;
  const registrable = (host: string) => getDomain(host, { allowPrivateDomains: true });
  const [uiDomain, siteDomain] = [registrable(ui), registrable(site)];
  // A single-label name such as localhost counts as a public suffix, so a host below it is another site.
  return uiDomain !== null && uiDomain === siteDomain;
}

function isAddress(hostname: string): boolean {
  return hostname.startsWith('[') || /^\d+(?:\.\d+){3}$/.test(hostname);
}
