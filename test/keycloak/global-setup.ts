import type { TestProject } from 'vitest/node';
import { administrator, missingForKeycloak, startKeycloak } from '../../scripts/keycloak.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where Keycloak answers; null = there is none here, and the suites are left out. */
    keycloakUrl: string | null;
    keycloakAdministrator: { readonly username: string; readonly password: string };
    /** The realm imported at the start. */
    importedSecrets: { readonly login: string; readonly principalSync: string };
  }
}

const secrets = { login: 'secret-of-the-login-client', principalSync: 'secret-of-the-reading-client' };

/** TEST_KEYCLOAK_URL: one that is running already, with the same administrator, for who writes these tests. */
export default async function setup(project: TestProject) {
  project.provide('keycloakAdministrator', administrator);
  project.provide('importedSecrets', secrets);
  const running = process.env['TEST_KEYCLOAK_URL'];
  if (running !== undefined) {
    project.provide('keycloakUrl', running);
    return undefined;
  }
  const missing = missingForKeycloak();
  if (missing !== null) {
    if (process.env['CI'] === 'true') throw new Error(missing);
    console.warn(`${missing} The suites against it are skipped.`);
    project.provide('keycloakUrl', null);
    return undefined;
  }
  const server = await startKeycloak({
    SERVICE_UI_URL: 'https://postern.test',
    OIDC_CLIENT_SECRET: secrets.login,
    PRINCIPAL_SYNC_CLIENT_SECRET: secrets.principalSync,
  });
  project.provide('keycloakUrl', server.url);
  return () => server.stop();
}
