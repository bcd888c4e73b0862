/**
 * What the verbs of the command line are called: operationId → words. A route that keys or access tokens can call has
 * a verb here, or a reason in `withoutVerb`; otherwise `npm run docs` fails, and test/docs.test.ts too.
 */
export const verbNames: Readonly<Record<string, string>> = {
  readAuthContext: 'whoami',
  revokeSelf: 'keys revoke',

  listSites: 'sites list',
  createSite: 'sites create',
  readSiteCapabilities: 'sites capabilities',
  getSite: 'sites get',
  readSiteActions: 'sites actions',
  changeSite: 'sites change',
  deleteSite: 'sites delete',
  replaceSiteContent: 'sites publish',
  extendSite: 'sites extend',
  restoreSite: 'sites restore',
  listSiteFiles: 'sites files',
  downloadSiteFile: 'sites download',
  listSiteVersions: 'versions list',
  getSiteVersion: 'versions get',
  compareSiteVersion: 'versions changes',
  publishSiteVersion: 'versions publish',
  previewSiteVersion: 'versions preview',

  listEnvironments: 'env list',
  createEnvironment: 'env create',
  getEnvironment: 'env get',
  changeEnvironment: 'env change',
  removeEnvironment: 'env delete',
  deployEnvironment: 'env deploy',
  extendEnvironment: 'env extend',
  explainEnvironment: 'env why',
  readEnvironmentLog: 'env logs',
  listEnvironmentEvents: 'env events',
  previewConfiguration: 'env preview',
  readEnvironmentPolicyForEveryone: 'env policy',
  listBuilds: 'builds list',
  getBuild: 'builds get',
  readBuildLog: 'builds logs',
  cancelBuild: 'builds cancel',
  retryBuild: 'builds retry',

  listRepositories: 'repos list',
  createRepository: 'repos create',
  getRepository: 'repos get',
  changeRepository: 'repos change',
  deleteRepository: 'repos delete',
  listBranches: 'repos branches',
  setRepositoryCredential: 'repos set-credential',
  removeRepositoryCredential: 'repos remove-credential',
  createRepositoryWebhook: 'repos create-webhook',
  removeRepositoryWebhook: 'repos remove-webhook',
  getConfigurationFileSchema: 'schema get',
  validateConfigurationFile: 'schema validate',
  validateConfigurationFileOfBranch: 'schema validate-branch',

  listConfigurationSurfaces: 'config surfaces',
  readSitesConfig: 'config get sites',
  changeSitesConfig: 'config set sites',
  readSitesConfigHistory: 'config history sites',
  revertSitesConfig: 'config revert sites',
  readAccessConfig: 'config get access',
  changeAccessConfig: 'config set access',
  readAccessConfigHistory: 'config history access',
  revertAccessConfig: 'config revert access',
  readEnvironmentPolicy: 'config get environments',
  changeEnvironmentPolicy: 'config set environments',
  readEnvironmentPolicyHistory: 'config history environments',
  revertEnvironmentPolicy: 'config revert environments',
  readMcpPolicy: 'config get mcp',
  changeMcpPolicy: 'config set mcp',
  readMcpPolicyHistory: 'config history mcp',
  revertMcpPolicy: 'config revert mcp',
  listMetadataLinks: 'links list',
  addMetadataLink: 'links add',
  changeMetadataLink: 'links change',
  deleteMetadataLink: 'links delete',
};

const stepOfAnUpload = 'A step of `postern deploy`.';
const olderClient =
  'For clients of the older system; the verbs of `postern env` and `postern builds` do the same.';

/** operationId → why there is no verb. Routes that only a browser session, a git server or a pod can call need no entry. */
export const withoutVerb: Readonly<Record<string, string>> = {
  startUpload: stepOfAnUpload,
  getUpload: stepOfAnUpload,
  sendContent: stepOfAnUpload,
  sendContents: stepOfAnUpload,
  publishUpload: stepOfAnUpload,
  changeOlderBuild: olderClient,
  redeployOlderBuild: olderClient,
  destroyOlderBuild: olderClient,
  overrideServices: olderClient,
  listRenderedMetadataLinks: olderClient,
  listBuildJobs: olderClient,
  readBuildJobLog: olderClient,
};

/** The groups of verbs, in the order of `--help`. */
export const groups: Readonly<Record<string, string>> = {
  sites: 'Sites: list, create, publish, change, delete.',
  versions: 'Versions of a site: list, compare, make live.',
  env: 'Environments: create, deploy, read logs.',
  builds: 'Deploys of Environments: list, read logs, cancel, retry.',
  repos: 'Repositories, their credentials and webhooks.',
  schema: 'The schema of postern.yaml, and checks against it.',
  config: 'Configuration documents: get, set, history, revert.',
  links: 'Metadata links that every Environment shows.',
  keys: 'The key that makes the request.',
};
