/** What a scope lets its holder do, one line each, as the consent page says it. */
export const scopeWords: Readonly<Record<string, string>> = {
  openid: 'Identify you',
  profile: 'See your name',
  email: 'See your e-mail address',
  offline_access: 'Stay connected until you disconnect it, even while you are away',
  'env:read': 'Read environments and builds',
  'env:write': 'Create, change and deploy environments',
  'sites:read': 'Read your sites and all public sites',
  'sites:write': 'Publish, change and delete your sites',
  'repos:read': 'Read the repository registry',
  'repos:write': 'Change the repository registry',
  mcp: 'Use the tools that this installation offers to agents',
  admin: 'Change the installation’s configuration, if you are an administrator',
};
