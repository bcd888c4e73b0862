import type { KeycloakSettings } from '../config/read.ts';
import { day } from '../core/clock.ts';
import type { SignIns } from '../features/audit/sign-ins.ts';
import {
  type AccessConfig,
  accessConfigSchema,
  defaultAccessConfig,
} from '../features/people/login/access-config.ts';
import { accessConfigRoutes } from '../features/people/login/access-routes.ts';
import {
  type ConfigDocumentDeps,
  createDocument,
  type DocumentStores,
} from '../features/settings/document.ts';
import { documentStore } from '../features/settings/settings.ts';
import type { Part } from './part.ts';

/** The configuration documents of all features. */
export const documentStores = { documents: documentStore };

/** The configuration document `/config/access`: limits and requirements of sign-ins. */
export function createAccessConfigPart({
  keycloak,
  read,
  tx,
  feed,
  isFresh,
  clock,
  secondFactorRefusal,
}: {
  readonly keycloak: KeycloakSettings | null;
  readonly read: Pick<DocumentStores, 'documents'> & { readonly signIns: SignIns };
  readonly secondFactorRefusal: Parameters<typeof accessConfigRoutes>[0]['secondFactorRefusal'];
} & Pick<ConfigDocumentDeps<AccessConfig, DocumentStores>, 'tx' | 'feed' | 'isFresh' | 'clock'>) {
  const accessConfig = createDocument<AccessConfig, DocumentStores>({
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
  return {
    services: { accessConfig },
    routes: accessConfigRoutes({
      config: accessConfig,
      secondFactorRefusal,
      peaks: (limit) => read.signIns.peaks(limit, clock.now() - day),
    }),
    start: async () => void (await accessConfig.read()),
  } satisfies Part;
}
