import type { Config } from '../../config/read.ts';
import { systemClock } from '../../core/clock.ts';
import { advice, failed, type Finding, ok, unknown } from './finding.ts';
import { explainNetwork } from '../../composition/backends/start-errors.ts';
import { identityTimeoutMs } from '../../features/people/directory/bounded.ts';
import {
  createKeycloakClient,
  type KeycloakClient,
  KeycloakTrouble,
} from '../../features/keycloak/keycloak-client.ts';
import { type AudienceFinding, checkMcp, type McpCheck } from '../../features/keycloak/mcp-check.ts';
import { networkFetch } from '../../platform/fetch.ts';
import { type Check, createSelfTest, selfTestChecks } from '../../features/keycloak/self-test.ts';

/**
 * The four checks that a start makes of Keycloak, each as a finding, and what the realm allows the clients of agents. Empty for
 * the built-in provider and for a gateway.
 */
export async function checkIdentity({
  keycloak,
  uiUrl,
}: Pick<Config, 'keycloak' | 'uiUrl'>): Promise<Finding[]> {
  if (keycloak === null) return [];
  const client = createKeycloakClient({
    ...keycloak,
    fetch: networkFetch,
    clock: systemClock,
    timeoutMs: identityTimeoutMs,
  });
  const result = await createSelfTest({ ...keycloak, client })();
  if (result.kind === 'passed')
    return [
      ...selfTestChecks.map((check) => ok(nameOf(check), says[check])),
      ...(await mcpFindings(uiUrl, client, keycloak.principalSync.id)),
    ];
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

async function mcpFindings(uiUrl: string, client: KeycloakClient, syncId: string): Promise<Finding[]> {
  try {
    const { registration, audience } = await checkMcp({ uiUrl, client });
    return [registrationFinding(registration), audienceFinding(audience, `${uiUrl}/mcp`, syncId)];
  } catch (error) {
    if (!(error instanceof KeycloakTrouble)) throw error;
    return [
      unknown('identity.mcp', `cannot be checked now: Keycloak gave no usable answer (${error.reason})`),
    ];
  }
}

function registrationFinding({ hasEndpoint, acceptsDocuments }: McpCheck['registration']): Finding {
  const ways = [
    'an administrator registers them in Keycloak',
    ...(hasEndpoint
      ? ['they register themselves, where the client registration policies of the realm let them']
      : []),
    ...(acceptsDocuments ? ['their client id is the address of a metadata document'] : []),
  ];
  return ok('identity.mcp_registration', `MCP clients become known in these ways: ${ways.join('; ')}`);
}

function audienceFinding(found: AudienceFinding, resource: string, syncId: string): Finding {
  const check = 'identity.mcp_audience';
  const move = `Put the audience mapper for ${resource} into the client scope mcp alone, and make that scope optional.`;
  switch (found.kind) {
    case 'apart':
      return ok(
        check,
        `tokens with the scope mcp are for ${resource}, and others are not; mappers of single clients are not checked`,
      );
    case 'in_every_token':
      return failed(check, `every token is for ${resource}, so the API refuses all of them`, move);
    case 'not_in_token':
      return failed(
        check,
        `tokens with the scope mcp are not for ${resource}, which refuses them`,
        `Add an audience mapper with the custom audience ${resource} to the client scope mcp.`,
      );
    case 'names_both':
      return failed(
        check,
        `tokens with the scope mcp are for ${found.other}, too`,
        `Remove the mapper for ${found.other} from the client scope mcp.`,
      );
    case 'no_scope':
      return advice(
        check,
        'the realm names no client scope mcp, so no agent can sign in',
        `To use MCP, create the optional client scope mcp with an audience mapper for ${resource}.`,
      );
    case 'scope_unknown':
      return unknown(
        check,
        `tokens without the scope mcp are not for ${resource}. What a token with it is for cannot be known without a person's token, because ${syncId} does not get that scope`,
      );
  }
}
