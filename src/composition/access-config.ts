import type { KeycloakSettings } from '../config/read.ts';
import {
  type AccessConfig,
  accessConfigSchema,
  defaultAccessConfig,
} from '../features/people/login/access-config.ts';
import {
  type ConfigDocument,
  type ConfigDocumentDeps,
  createDocument,
  type DocumentStores,
} from '../features/settings/document.ts';

/** The configuration document `/config/access`: how many sign-ins one network address may start in a minute. */
export function createAccessConfig(
  deps: { readonly keycloak: KeycloakSettings | null } & Pick<
    ConfigDocumentDeps<AccessConfig, DocumentStores>,
    'read' | 'tx' | 'feed' | 'isFresh' | 'clock'
  >,
): ConfigDocument<AccessConfig> {
  const { keycloak, read, tx, feed, isFresh, clock } = deps;
  return createDocument<AccessConfig, DocumentStores>({
    name: 'access',
    initial: defaultAccessConfig({ isKeycloak: Boolean(keycloak) }),
    parse: (value) => accessConfigSchema.parse(value),
    topic: 'config',
    eventOf: (reason) => ({
      event: reason === 'changed' ? 'config.access.changed' : 'config.access.reverted',
      target: { kind: 'config', id: 'access' },
    }),
    read,
    tx,
    feed,
    isFresh,
    clock,
  });
}
