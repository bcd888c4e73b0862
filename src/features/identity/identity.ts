/** The public interface of identity for other features. */
export type { IdentityCheck, People } from './people.ts';
