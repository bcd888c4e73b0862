import type { Config } from './config.ts';
import { systemClock } from './core/clock.ts';
import { failed, type Finding, ok, unknown } from './doctor-finding.ts';
import { identityTimeoutMs } from './features/identity/directory/bounded.ts';
import { createKeycloakServer } from './features/identity/keycloak/keycloak-server.ts';
import { overNetwork } from './features/identity/keycloak/over-network.ts';
import { type Check, createSelfTest, selfTestChecks } from './features/identity/keycloak/self-test.ts';

/** The four checks that a start makes of Keycloak, each as a finding. Nothing for the built-in provider, nor for a gateway. */
export async function checkIdentity({ keycloak }: Pick<Config, 'keycloak'>): Promise<Finding[]> {
  if (keycloak === null) return [];
  const server = createKeycloakServer({
    ...keycloak,
    fetch: overNetwork,
    clock: systemClock,
    timeoutMs: identityTimeoutMs,
  });
  const result = await createSelfTest({ ...keycloak, server })();
  if (result.kind === 'passed') return selfTestChecks.map((check) => ok(nameOf(check), says[check]));
  const at = selfTestChecks.indexOf(result.check);
  return selfTestChecks.map((check, place) => {
    if (place < at) return ok(nameOf(check), says[check]);
    if (place > at) return unknown(nameOf(check), `needs "${result.check}" to be mended first`);
    return result.kind === 'refused'
      ? failed(nameOf(check), `${result.setting} ${result.problem}`, result.fix)
      : failed(
          nameOf(check),
          `${keycloak.issuer} cannot be asked (${result.reason})`,
          'Look at Keycloak, at the way to it, and at OIDC_ISSUER. Until it answers nobody signs in and nobody new is let in.',
        );
  });
}

const nameOf = (check: Check) => `identity.${check.replaceAll(' ', '_')}`;

const says: Readonly<Record<Check, string>> = {
  discovery: 'the realm calls itself as OIDC_ISSUER says',
  'client credentials': 'both clients get in, and the one that reads can do nothing else',
  'reading people and roles': 'people, their roles and groups can be read, and both roles are there',
  introspection: 'tokens can be introspected',
};
