import type { Config } from '../../config/read.ts';
import { advice, failed, type Finding, ok } from './finding.ts';
import { isShared, unavailableReasonOf } from '../../features/grants/grants.ts';
import type { Log } from '../../platform/log.ts';

/** Checks that need the two addresses only, and no network. The doctor and a start report them in the same words. */
type Addresses = Pick<Config, 'uiUrl' | 'contentUrl' | 'allowSharedApex'>;

/** Whether private sites are possible with these addresses; if not, why, and the fix. */
export function checkRules(config: Addresses): Finding {
  const check = 'hosts.private_sites';
  const unavailableReason = unavailableReasonOf(config);
  if (unavailableReason !== null)
    return failed(
      check,
      unavailableReason,
      'Set SITES_CONTENT_URL to an https address on a separate registrable domain, or set SITES_ALLOW_SHARED_APEX=true on every process.',
    );
  if (unreachableContent(config))
    return failed(
      check,
      'SITES_CONTENT_URL is localhost, which is the own machine of each visitor',
      'Set it to a separate host, with a DNS wildcard for the sites below it.',
    );
  if (config.allowSharedApex && isShared(config))
    return advice(
      check,
      'private sites share a registrable domain with the web app',
      'A separate content domain isolates sites better.',
    );
  return ok(check, 'private sites and the web app have separate domains');
}

/** For operators who start web or gateway without the doctor: one log line while private sites are not possible. */
export function warnOfHosts(config: Addresses, log: Log): void {
  const { check, state, says, fix } = checkRules(config);
  if (state === 'failed') log.warn({ check, fix }, says);
}

/** True when clients reach the service from elsewhere, but the addresses of sites lead to the client's own machine. */
export function unreachableContent({ uiUrl, contentUrl }: Pick<Config, 'uiUrl' | 'contentUrl'>): boolean {
  const isLocal = (url: string) => /(?:^|\.)localhost$/.test(new URL(url).hostname);
  return isLocal(contentUrl) && !isLocal(uiUrl);
}
