/**
 * Configuration documents: one JSON value for each name, every version kept, the newest in force (contract 2).
 * The meaning of a document is left to the feature that owns it.
 */
export type { ConfigDocument, InForce } from './document.ts';
export { widens } from './widens.ts';
export { byAdministrators, documentRoutes } from './document-routes.ts';
export {
  documentStore,
  type DocumentVersion,
} from './document-store.ts';
