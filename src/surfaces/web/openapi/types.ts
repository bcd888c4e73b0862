import type { z } from 'zod';
import type { ErrorCode } from '../../../core/errors.ts';

/** The part of OpenAPI 3.1.1 that Postern writes. Schemas are JSON Schema draft 2020-12. */
export type JsonSchema = z.core.JSONSchema.BaseSchema;

export type Ref = { readonly $ref: string };

export type OpenApi = {
  readonly openapi: '3.1.1';
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly summary: string;
    readonly description: string;
    readonly license: { readonly name: string; readonly identifier: string };
  };
  readonly jsonSchemaDialect: string;
  readonly servers: readonly { readonly url: string; readonly description: string }[];
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: {
    readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly headers: Readonly<Record<string, Header>>;
    readonly examples: Readonly<Record<string, Example>>;
  };
};

export type HttpMethod = 'get' | 'post' | 'put' | 'patch' | 'delete';
export type PathItem = { readonly [method in HttpMethod]?: Operation };

export type Operation = {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<Record<string, MediaType>>;
  };
  readonly responses: Readonly<Record<string, Answer>>;
  /**
   * Who may call it: `anyone`, a `git_server` with the webhook secret of a repository, a `pod` with a ticket, or kinds of
   * callers.
   */
  readonly 'x-postern-callers': 'anyone' | 'git_server' | 'pod' | readonly string[];
  /** Required of keys and access tokens. */
  readonly 'x-postern-scope'?: string;
  /** Required of people, read live. */
  readonly 'x-postern-role'?: string;
  /** Whether the limiter counts it for the owner of a key. */
  readonly 'x-postern-limited': boolean;
  /** Whether the change limit counts it when a person sends it. */
  readonly 'x-postern-changes-limited': boolean;
};

export type Parameter = {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
};

export type MediaType = {
  readonly schema: JsonSchema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, Ref | Example>>;
};

export type Answer = {
  readonly description: string;
  readonly headers: Readonly<Record<string, Ref>>;
  /** Absent for a response without a body. */
  readonly content?: Readonly<Record<string, MediaType>>;
  /** The error codes of this status, so that a reader need not search the schema. */
  readonly 'x-postern-codes'?: readonly ErrorCode[];
};

export type Header = { readonly description: string; readonly schema: JsonSchema };
export type Example = { readonly summary: string; readonly value: unknown };
export type SecurityScheme = Readonly<Record<string, string>>;
