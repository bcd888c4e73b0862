import type { Config } from '../../config/read.ts';
import { systemClock } from '../../core/clock.ts';
import { failed, type Finding, ok, unknown } from './finding.ts';
import { explainNetwork } from '../../composition/start-errors.ts';
import { identityTimeoutMs } from '../../features/people/directory/bounded.ts';
import { createKeycloakClient } from '../../features/keycloak/keycloak-client.ts';
import { networkFetch } from '../../platform/fetch.ts';
import { type Check, createSelfTest, selfTestChecks } from '../../features/keycloak/self-test.ts';

/** The four checks that a start makes of Keycloak, each as a finding. Empty for the built-in provider and for a gateway. */
export async function checkIdentity({ keycloak }: Pick<Config, 'keycloak'>): Promise<Finding[]> {
  if (keycloak === null) return [];
  const client = createKeycloakClient({
    ...keycloak,
    fetch: networkFetch,
    clock: systemClock,
    timeoutMs: identityTimeoutMs,
  });
  const result = await createSelfTest({ ...keycloak, client })();
  if (result.kind === 'passed') return selfTestChecks.map((check) => ok(nameOf(check), says[check]));
  const at = selfTestChecks.indexOf(result.check);
  return selfTestChecks.map((check, place) => {
    if (place < at) return ok(nameOf(check), says[check]);
    if (place > at) return unknown(nameOf(check), `can be checked when "${result.check}" is fixed`);
    if (result.kind === 'refused')
      return failed(nameOf(check), `${result.setting} ${result.problem}`, result.fix);
    const [problem, fix] = explainNetwork(result.reason) ?? [
      'it sends no usable response',
      'Check Keycloak, the network to it, and OIDC_ISSUER.',
    ];
    return failed(
      nameOf(check),
      `${keycloak.issuer} cannot be reached: ${problem} (${result.reason})`,
      `${fix} Until then, nobody can sign in.`,
    );
  });
}

const nameOf = (check: Check) => `identity.${check.replaceAll(' ', '_')}`;

const says: Readonly<Record<Check, string>> = {
  discovery: 'the issuer of the realm is OIDC_ISSUER',
  'client credentials': 'Keycloak accepts both clients, and the reading client can change nothing',
  'reading people and roles': 'people, their roles and groups can be read, and both roles exist',
  introspection: 'tokens can be introspected',
};
