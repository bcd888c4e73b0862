import type { Config } from './config.ts';
import { advice, failed, type Finding, ok } from './doctor-finding.ts';
import { isShared, obstacleOf } from './features/grants/grants.ts';
import type { Log } from './platform/log.ts';

/** What the two addresses alone decide, without asking anybody. The doctor and a start say it in the same words. */
type Addresses = Pick<Config, 'uiUrl' | 'contentUrl' | 'allowSharedApex'>;

/** Whether private sites can be had with these addresses, and if not, why and what to do. */
export function checkRules(config: Addresses): Finding {
  const check = 'hosts.private_sites';
  const obstacle = obstacleOf(config);
  if (obstacle !== null)
    return failed(
      check,
      obstacle,
      'Give SITES_CONTENT_URL a registrable domain of its own, with https, or set SITES_ALLOW_SHARED_APEX=true on every process.',
    );
  if (unreachableContent(config))
    return failed(
      check,
      'SITES_CONTENT_URL leads every visitor to a machine of their own (localhost)',
      'Set it to a host of its own, with a wildcard for its sites.',
    );
  if (config.allowSharedApex && isShared(config))
    return advice(
      check,
      'allowed on a shared registrable domain',
      'A content domain of its own keeps sites further apart.',
    );
  return ok(check, 'the addresses keep private sites apart from the web app');
}

/** For who starts web or gateway and does not ask the doctor: one line, while no private site can be had. */
export function warnOfHosts(config: Addresses, log: Log): void {
  const { check, state, says, fix } = checkRules(config);
  if (state === 'failed') log.warn({ check, fix }, says);
}

/** People reach the service from elsewhere, and the addresses of sites lead to their own machine. */
export function unreachableContent({ uiUrl, contentUrl }: Pick<Config, 'uiUrl' | 'contentUrl'>): boolean {
  const isLocal = (url: string) => /(?:^|\.)localhost$/.test(new URL(url).hostname);
  return isLocal(contentUrl) && !isLocal(uiUrl);
}
