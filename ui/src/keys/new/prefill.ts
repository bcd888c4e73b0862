/** Documents and the command line can link to a form with initial values: ?name=&scopes=sites:write&ttlHours=24 */
export type Prefill = { readonly name?: string; readonly scopes?: string; readonly ttlHours?: number };

export function prefillFrom(raw: Record<string, unknown>): Prefill {
  const ttlHours = Number(raw['ttlHours']);
  return {
    ...(typeof raw['name'] === 'string' ? { name: raw['name'].slice(0, 100) } : {}),
    ...(typeof raw['scopes'] === 'string' ? { scopes: raw['scopes'].slice(0, 200) } : {}),
    ...(ttlHours > 0 ? { ttlHours } : {}),
  };
}
