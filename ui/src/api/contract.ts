import type { components, paths } from './openapi.ts';

/** Short names for the types of the API's OpenAPI document. */
export type Schemas = components['schemas'];

type Reads = {
  [Path in keyof paths as paths[Path] extends { get: object } ? Path : never]: paths[Path];
};

/** The query parameters of a GET of this path. */
export type Query<Path extends keyof Reads> = NonNullable<Reads[Path]['get']['parameters']['query']>;
