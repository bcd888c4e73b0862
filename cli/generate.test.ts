import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineRoute } from '../src/platform/http.ts';
import { queryFlag } from '../src/platform/schemas.ts';
import { buildOpenApi } from '../src/surfaces/web/openapi/openapi.ts';
import { verbsOf } from './generate.ts';

const things = defineRoute({
  method: 'POST',
  path: '/things/{id}',
  operationId: 'makeThing',
  tag: 'Things',
  summary: 'Make a thing',
  description: 'Makes it at once.',
  policy: { callers: ['session', 'personal_key'], scope: 'sites:write', identity: 'none' },
  params: z.strictObject({ id: z.string().describe('Its id') }),
  query: z.strictObject({ dryRun: queryFlag.optional() }),
  body: z.strictObject({
    name: z.string(),
    size: z.number().int().optional().describe('Bytes'),
    tags: z.array(z.string()).optional(),
    kind: z.enum(['small', 'large']).optional(),
    rules: z.record(z.string(), z.string()).optional(),
    password: z.string().optional(),
  }),
  success: {
    status: 200,
    data: z.array(z.strictObject({ id: z.string(), owner: z.strictObject({ id: z.string() }) })),
    pagination: 'cursor',
  },
  handle: () => ({ data: [] }),
});
const session = defineRoute({
  method: 'GET',
  path: '/mine',
  operationId: 'readMine',
  tag: 'Things',
  summary: 'Read what is mine',
  policy: { callers: ['session'], identity: 'none' },
  success: { status: 204, empty: true },
  handle: () => ({ data: undefined }),
});
const document = buildOpenApi({
  routes: [things, session],
  version: '1.0.0',
  serverUrl: 'https://example.com',
});

test('a verb has the arguments, options and result of its route, and no option for a secret', () => {
  const { verbs, sessionRoutes } = verbsOf(document, {
    verbNames: { makeThing: 'things make' },
    withoutVerb: {},
  });
  expect(verbs).toEqual([
    {
      name: 'things make',
      summary: 'Make a thing',
      description: 'Makes it at once.',
      scope: 'sites:write',
      method: 'POST',
      path: '/things/{id}',
      callers: 'keys',
      arguments: [{ name: 'id', meaning: 'Its id' }],
      options: [
        { name: 'dryRun', in: 'query', type: 'flag', meaning: '' },
        { name: 'name', in: 'body', type: 'text', isRequired: true, meaning: '' },
        { name: 'size', in: 'body', type: 'number', meaning: 'Bytes' },
        { name: 'tags', in: 'body', type: 'list', meaning: '' },
        { name: 'kind', in: 'body', type: 'text', choices: ['small', 'large'], meaning: '' },
        { name: 'rules', in: 'body', type: 'json', meaning: '' },
      ],
      body: 'required',
      inputOnly: ['password'],
      fields: ['id', 'owner'],
      columns: ['id'],
      pagination: 'cursor',
    },
  ]);
  expect(sessionRoutes).toEqual(['GET /mine']);
});

test('a route without a verb or a reason is named, and a name without a route too', () => {
  const names = { verbNames: { gone: 'things go', readMine: 'mine read' }, withoutVerb: {} };
  expect(() => verbsOf(document, names)).toThrow(
    [
      'The route makeThing has no verb, and no reason to have none.',
      'There is no route gone that a key or an access token can call.',
      'There is no route readMine that a key or an access token can call.',
    ].join('\n'),
  );
});
