import { gunzipSync } from 'node:zlib';
import Fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { sampleRoutes } from '../../../../test/sample-routes.ts';
import { problemsOf } from '../../../../test/openapi-problems.ts';
import { createKeySchema } from '../../../features/keys/schemas.ts';
import { codesOf } from './codes.ts';
import { buildOpenApi } from './openapi.ts';
import { openApiPage } from './page.ts';
import { withNamedParts } from './parts.ts';
import { schemaWriter } from './schemas.ts';

const document = buildOpenApi({
  routes: sampleRoutes,
  version: '1.2.3',
  serverUrl: 'https://postern.example',
});
const named = (operationId: string) => {
  const route = sampleRoutes.find((candidate) => candidate.operationId === operationId);
  if (route === undefined) throw new Error(`no sample ${operationId}`);
  return route;
};

describe('the OpenAPI document', () => {
  test('is whole: unique operations, declared parameters, resolvable references, a schema for every answer', () => {
    expect(problemsOf(document)).toEqual([]);
  });

  test('says who may call an operation, for programs and for people', () => {
    const revoke = document.paths['/api/v2/tokens/{id}']?.delete;
    expect(revoke?.security).toEqual([{ sessionCookie: [] }]);
    expect(revoke?.['x-postern-role']).toBe('admin');
    expect(revoke?.description).toContain('An administrator’s browser session');
    const list = document.paths['/api/v2/repositories']?.get;
    expect(list?.security).toContainEqual({ serviceKey: ['repos:read'] });
    expect(list?.['x-postern-scope']).toBe('repos:read');
    expect(document.paths['/api/v2/auth/revoke-self']?.post?.security).toEqual([]);
  });

  test('tells a query number as a number, with its bounds and default', () => {
    const limit = document.paths['/api/v2/me/tokens']?.get?.parameters?.find(({ name }) => name === 'limit');
    expect(limit).toEqual({
      name: 'limit',
      in: 'query',
      required: false,
      schema: { type: 'integer', minimum: 1, maximum: 100, default: 25 },
    });
  });

  test('asks for If-Match where a document is changed', () => {
    const parameters = document.paths['/api/v2/config/api-keys']?.put?.parameters ?? [];
    expect(parameters.find(({ name }) => name === 'If-Match')?.required).toBe(true);
  });

  test('writes a shared schema once', () => {
    expect(document.components.schemas['Key']?.description).toContain('never its value');
    expect(JSON.stringify(document.paths).match(/"#\/components\/schemas\/Key"/g)?.length).toBeGreaterThan(0);
  });

  // The two forms that generators of clients in Go and Python read as a value that may be null.
  test('says that a value may be null by its type, or by oneOf for a shared schema', () => {
    const writer = schemaWriter();
    const person = z.strictObject({ id: z.string() }).meta({ id: 'Someone' });
    const { properties } = writer.write(
      z.strictObject({
        ends: z.string().max(9).nullable(),
        state: z.enum(['on', 'off']).nullable(),
        value: z.union([z.string().max(9), z.number(), z.null()]),
        owner: person.nullable(),
      }),
      'output',
    );
    expect(properties).toEqual({
      ends: { type: ['string', 'null'], maxLength: 9 },
      state: { type: ['string', 'null'], enum: ['on', 'off', null] },
      // Generators for Go stop at a list of several types besides null.
      value: { anyOf: [{ type: 'string', maxLength: 9 }, { type: 'number' }, { type: 'null' }] },
      owner: { oneOf: [{ $ref: '#/components/schemas/Someone' }, { type: 'null' }] },
    });
  });

  // Generators of Go and Python clients drop null from a union with an unnamed object, and count in 32 bits.
  test('names every object inside a shared schema, and refuses two of one name', () => {
    const owner = { type: 'object' as const, properties: { id: { type: 'string' as const } } };
    const named = withNamedParts({ Site: { type: 'object', properties: { owner } } });
    expect(named['Site']?.properties).toEqual({ owner: { $ref: '#/components/schemas/SiteOwner' } });
    expect(named['SiteOwner']).toEqual(owner);
    expect(() => withNamedParts({ Site: { properties: { owner } }, SiteOwner: { type: 'string' } })).toThrow(
      'SiteOwner',
    );
  });

  test('says that a number needs 64 bits', () => {
    const { properties } = schemaWriter().write(
      z.strictObject({ few: z.int().max(9), bytes: z.int().max(2 ** 40) }),
      'output',
    );
    expect(properties).toMatchObject({ few: { maximum: 9 }, bytes: { format: 'int64' } });
    expect(properties?.['few']).not.toHaveProperty('format');
  });

  test('keeps the ids in examples, so that a sample shows a whole thing', () => {
    const event = z
      .strictObject({ id: z.string(), name: z.string() })
      .meta({ id: 'Event', examples: [{ id: 'evt_1', name: 'made' }] });
    const writer = schemaWriter();
    expect(writer.write(z.array(event), 'output').items).toEqual({ $ref: '#/components/schemas/Event' });
    expect(writer.components['Event']?.examples).toEqual([{ id: 'evt_1', name: 'made' }]);
  });

  test('says that a key names 1 to 50 repositories, though repeats are folded before they are counted', () => {
    const writer = schemaWriter();
    writer.write(createKeySchema, 'input');
    const selected = JSON.stringify(writer.components['RepositoryAccess']);
    expect(selected).toMatch(/"minItems":1,"maxItems":50/);
    const names = Array.from({ length: 60 }, (_, at) => (at % 2 === 0 ? 'acme/web' : 'Acme/Web'));
    const body = {
      name: 'x',
      scopes: ['repos:read'],
      repositoryAccess: { mode: 'selected', repositories: names },
    };
    expect(createKeySchema.safeParse(body).success).toBe(true);
  });

  test('refuses an example that could be a live key', () => {
    const value = `app_pat_${'A'.repeat(50)}`;
    const leaky = { ...named('createMyKey'), example: { data: { token: value } } };
    expect(() => buildOpenApi({ routes: [leaky], version: '1', serverUrl: 'https://x.example' })).toThrow(
      /mask/,
    );
  });
});

describe('the codes of a route', () => {
  test('a session-only write can refuse the caller kind, the origin, the body and its fields', () => {
    expect(codesOf(named('createMyKey'))).toEqual(
      expect.arrayContaining([
        'authentication_required',
        'interactive_auth_required',
        'forbidden_origin',
        'invalid_body',
        'invalid_name',
        'unsupported_media_type',
        'personal_token_limit',
      ]),
    );
  });

  test('a read with a scope can refuse the scope and the key type, and never the origin', () => {
    const codes = codesOf(named('listRepositories'));
    expect(codes).toEqual(expect.arrayContaining(['forbidden_scope', 'api_keys_disabled', 'user_disabled']));
    expect(codes).not.toContain('forbidden_origin');
    expect(codes).not.toContain('interactive_auth_required');
  });

  test('a route for anyone asks for no credential and judges none', () => {
    const codes = codesOf(named('revokeThisKey'));
    expect(codes).not.toContain('authentication_required');
    expect(codes).not.toContain('invalid_credential');
    expect(codes).toContain('credential_in_url');
  });
});

test('GET /api/v2/openapi.json is public and answers 304 to who has it', async () => {
  const app = Fastify();
  await app.register(async (scope) => openApiPage(() => document)(scope));
  const first = await app.inject({ url: '/api/v2/openapi.json' });
  expect(first.statusCode).toBe(200);
  expect(first.json().openapi).toBe('3.1.1');
  const etag = String(first.headers['etag']);
  const again = await app.inject({ url: '/api/v2/openapi.json', headers: { 'if-none-match': `W/${etag}` } });
  expect([again.statusCode, again.body]).toEqual([304, '']);
  const packed = await app.inject({
    url: '/api/v2/openapi.json',
    headers: { 'accept-encoding': 'br, gzip' },
  });
  expect(packed.headers['content-encoding']).toBe('gzip');
  expect(gunzipSync(packed.rawPayload).toString()).toBe(first.body);
});
