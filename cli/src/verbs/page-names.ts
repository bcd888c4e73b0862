/** What only a browser session may do: word → its page in the web app, and what people do there. */
export const pages: ReadonlyMap<string, readonly [path: string, meaning: string]> = new Map([
  ['keys', ['/settings/keys', 'Your keys: create, narrow, replace, revoke']],
  ['notices', ['/settings/notices', 'Notices about your keys, sites, Environments and account']],
  ['users', ['/admin/users', 'Accounts, for administrators']],
  ['groups', ['/admin/groups', 'Groups, for administrators']],
  ['audit', ['/admin/audit', 'The audit log, for administrators']],
]);
