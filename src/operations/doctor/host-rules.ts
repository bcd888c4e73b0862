import type { Config } from '../../config/read.ts';
import { advice, failed, type Finding, ok } from './finding.ts';
import {
  environmentGrants,
  type GrantKind,
  isShared,
  siteGrants,
  unavailableReasonOf,
} from '../../features/grants/grants.ts';
import type { Log } from '../../platform/log.ts';

/** Checks that need the addresses only, and no network. The doctor and a start report them in the same words. */
type Addresses = Pick<Config, 'uiUrl' | GrantKind['contentUrl'] | 'allowSharedApex'>;

/** Sites, and Environments where they have another address. */
export function kindsOfContent({
  contentUrl,
  environmentsContentUrl,
}: Pick<Config, GrantKind['contentUrl']>): readonly GrantKind[] {
  return contentUrl === environmentsContentUrl ? [siteGrants] : [siteGrants, environmentGrants];
}

/** Whether private sites or Environments are possible with these addresses; if not, why, and the fix. */
export function checkRules(config: Addresses, kind: GrantKind): Finding {
  const check = `hosts.private_${kind.name}s`;
  const { noun, contentSetting } = kind;
  const unavailableReason = unavailableReasonOf(config, kind);
  if (unavailableReason !== null)
    return failed(
      check,
      unavailableReason,
      `Set ${contentSetting} to an https address on a separate registrable domain, or set SITES_ALLOW_SHARED_APEX=true on every process.`,
    );
  if (unreachableContent(config, kind))
    return failed(
      check,
      `${contentSetting} is localhost, which is the own machine of each visitor`,
      `Set it to a separate host, with a DNS wildcard for the ${noun}s below it.`,
    );
  if (config.allowSharedApex && isShared(config, kind))
    return advice(
      check,
      `private ${noun}s share a registrable domain with the web app`,
      `A separate content domain isolates ${noun}s better.`,
    );
  return ok(check, `private ${noun}s and the web app have separate domains`);
}

/** For operators who start web or gateway without the doctor: a log line for each kind that is not possible in private. */
export function warnOfHosts(config: Addresses, log: Log): void {
  for (const kind of kindsOfContent(config)) {
    const { check, state, says, fix } = checkRules(config, kind);
    if (state === 'failed') log.warn({ check, fix }, says);
  }
}

/** True when clients reach the service from elsewhere, but the content hosts lead to the client's own machine. */
export function unreachableContent(
  config: Pick<Config, 'uiUrl' | GrantKind['contentUrl']>,
  kind: Pick<GrantKind, 'contentUrl'>,
): boolean {
  const isLocal = (url: string) => /(?:^|\.)localhost$/.test(new URL(url).hostname);
  return isLocal(config[kind.contentUrl]) && !isLocal(config.uiUrl);
}
