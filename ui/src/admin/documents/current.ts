import { queryClient } from '../../api/queries.ts';
import type { Current, DocumentApi } from './document-api.ts';

export const currentKey = (api: DocumentApi) => ['admin', 'document', api.name];

/** What was just saved is in force: it is shown at once, and whatever follows from it is read anew. */
export function keepCurrent(api: DocumentApi, now: Current): void {
  queryClient.setQueryData(currentKey(api), now);
  for (const part of ['history', 'keys', 'sites'])
    void queryClient.invalidateQueries({ queryKey: ['admin', part] });
}
