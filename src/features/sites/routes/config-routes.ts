import { timestampOrNull } from '../../../core/clock.ts';
import type { Route } from '../../../platform/http.ts';
import {
  byAdministrators,
  type ConfigDocument,
  documentRoutes,
  type InForce,
} from '../../settings/settings.ts';
import { exampleConfigVersion } from './examples.ts';
import { sitesConfigChangeSchema, sitesConfigVersionSchema } from './schemas.ts';
import { defaultSitesConfig, type SitesConfig, sitesConfigSchema } from '../site/sites-config.ts';

/** What a configuration would change today for owners of sites. */
export type SitesDryRun = { readonly sitesOffline: number; readonly ownersOverQuota: number };

export function sitesConfigRoutes(deps: {
  config: ConfigDocument<SitesConfig>;
  dryRun: (next: SitesConfig) => Promise<SitesDryRun>;
}): Route[] {
  const { config, dryRun } = deps;
  return documentRoutes({
    path: 'sites',
    operation: 'SitesConfig',
    tag: 'Sites configuration',
    title: { one: 'Sites configuration', many: 'Sites configurations' },
    policy: byAdministrators,
    changeDescription:
      'Replaces the whole document. Takes effect everywhere within a second. `enabled: false` stops every upload and all content, and changes nothing else. `dryRun=true` shows the effect that the document would have today.',
    body: sitesConfigSchema,
    shown: sitesConfigVersionSchema,
    change: sitesConfigChangeSchema,
    example: { body: defaultSitesConfig, data: exampleConfigVersion },
    document: config,
    async dryRun(ifMatch, next) {
      const current = await config.matched(ifMatch);
      return { current, impact: await dryRun(next) };
    },
    toShown: toResponse,
  });
}

function toResponse({ version, value, changedAt, changedBy }: InForce<SitesConfig>) {
  return {
    version,
    changedAt: timestampOrNull(changedAt),
    changedBy,
    config: value,
  };
}
