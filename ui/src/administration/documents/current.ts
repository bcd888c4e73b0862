import { queryClient } from '../../api/queries.ts';
import type { Current, DocumentApi } from './document-api.ts';

export const currentKey = (api: DocumentApi) => ['admin', 'document', api.name];

/** Shows the saved document immediately and refetches everything that depends on it. */
export function keepCurrent(api: DocumentApi, now: Current): void {
  queryClient.setQueryData(currentKey(api), now);
  for (const part of ['history', 'keys', 'sites', 'agents'])
    void queryClient.invalidateQueries({ queryKey: ['admin', part] });
}
