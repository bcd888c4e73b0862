/** Configuration documents that access tokens may read: name → path, and the field that has the document. */
export const documents: ReadonlyMap<string, { readonly path: string; readonly field: string }> = new Map([
  ['sites', { path: '/config/sites', field: 'config' }],
  ['access', { path: '/config/access', field: 'config' }],
  ['environments', { path: '/config/api-environments', field: 'policy' }],
]);
