import { z } from 'zod';
import { timestamp } from '../../core/clock.ts';
import { isLoopback } from '../../core/loopback.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { plainText, timestampSchema } from '../../platform/schemas.ts';
import { toolRules } from '../agents/agents.ts';
import { byAdministrators } from '../settings/settings.ts';
import { type McpServer, serverAuths, type ServerTool } from './server-store.ts';
import { maxServers, type McpServers } from './servers.ts';
import { digestOf, namePattern, problemOf, type ToolText } from './tool-text.ts';

/** A name that the server gives a tool; a rule for a name that it never lists has no effect. */
const toolName = z.string().regex(namePattern, 'must be the name of a tool');
const slug = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/, 'must be 1 to 32 of a-z, 0-9 and hyphens')
  .describe('The prefix of its tool names at `/mcp`: `<slug>__<tool>`');
const url = z
  .string()
  .max(500)
  .refine(isServerUrl, 'must be an https URL without user name, query and fragment')
  .transform((text) => new URL(text).href)
  .meta({
    maxLength: 500,
    description: 'Its MCP endpoint (Streamable HTTP). `http` is for loopback addresses only',
  });
const auth = z
  .enum(serverAuths)
  .describe(
    'How a person signs in there. `header`: the person enters a value for the Authorization header. `oauth`: at the authorization server that it names',
  );
const tools = z
  .record(z.string(), z.enum(toolRules))
  .refine((rules) => Object.keys(rules).length <= 200, 'must have at most 200 rules')
  .refine(
    (rules) => Object.keys(rules).every((name) => toolName.safeParse(name).success),
    'must have names of tools',
  )
  .describe('Rules by the server’s tool names. A tool without a rule is `ask`');
const readOnlyTools = z
  .array(toolName)
  .max(200)
  .describe('Tools that change nothing. Each other tool counts as one that changes something');
const enabled = z.boolean().describe('False: no one can use or connect it; connections stay');

const client = z
  .strictObject({
    clientId: z.string().regex(/^[\x21-\x7e]{1,500}$/, 'must be 1 to 500 printable ASCII characters'),
    clientSecret: z
      .string()
      .regex(/^[\x20-\x7e]{1,500}$/, 'must be 1 to 500 printable ASCII characters')
      .optional()
      .describe('Absent: a public client. Postern stores it encrypted and never shows it'),
  })
  .nullable()
  .describe(
    'For `oauth`: the client that the operator of the server gave Postern. Null: Postern registers itself. Postern sends the secret only to the `issuer` that you accept for it',
  );

const addSchema = z
  .strictObject({
    slug,
    name: plainText(100),
    url,
    auth,
    tools: tools.default({}),
    readOnlyTools: readOnlyTools.default([]),
    enabled: enabled.default(true),
    client: client.default(null),
  })
  .meta({ id: 'McpServerRequest' });
const changeSchema = z
  .strictObject({ name: plainText(100), url, auth, tools, readOnlyTools, enabled, client })
  .extend({
    issuer: z
      .string()
      .max(500)
      .describe('The value of `changedIssuer` accepts it. The value of `issuer` keeps the current one'),
  })
  .partial()
  .meta({ id: 'McpServerChange' });

const shown = {
  slug: z.string(),
  name: z.string(),
  url: z.string(),
  auth: z.enum(serverAuths),
  tools: z.record(z.string(), z.enum(toolRules)),
  readOnlyTools: z.array(z.string()),
  enabled: z.boolean(),
  issuer: z.string().nullable().describe('OAuth: where people sign in. Null: none was found or accepted yet'),
  clientId: z.string().nullable().describe('OAuth: the client id of Postern. Null: Postern registers itself'),
  changedIssuer: z
    .string()
    .nullable()
    .describe(
      'OAuth: the server now names this authorization server: at another origin, in place of `issuer`, or while a client secret waits for one. No one can connect until you accept it',
    ),
};
const serverSchema = z.strictObject(shown).meta({ id: 'McpServer' });
const changedSchema = z
  .strictObject({
    ...shown,
    endedConnections: z.number().int().describe('Connections that this change removed'),
  })
  .meta({ id: 'ChangedMcpServer' });

const textSchema = z
  .strictObject({
    title: z.string().nullable(),
    description: z.string(),
    inputSchema: z.string().describe('As JSON'),
    outputSchema: z.string().nullable().describe('As JSON'),
    annotations: z.string().nullable().describe('As JSON. Postern ignores them'),
  })
  .meta({ id: 'McpToolText' });
const toolSchema = z
  .strictObject({
    name: z.string(),
    status: z
      .enum(['new', 'changed', 'accepted'])
      .describe('`new`: not accepted yet. `changed`: the server lists another text than the accepted one'),
    problem: z.string().nullable().describe('Why it cannot be accepted. Null: it can be'),
    digest: z.string().describe('Digest of the listed text; accepting it needs this value'),
    listedAt: timestampSchema.describe('When Postern first saw the listed text'),
    listed: textSchema.describe('The text that the server listed last'),
    accepted: textSchema.nullable().describe('The text that agents get. Null: none'),
  })
  .meta({ id: 'McpServerTool' });

const exampleInput = {
  slug: 'tracker',
  name: 'Issue tracker',
  url: 'https://mcp.tracker.example/mcp',
  auth: 'oauth',
  tools: { search_issues: 'allow' },
  readOnlyTools: ['search_issues'],
  enabled: true,
} as const;
const example = {
  ...exampleInput,
  tools: { search_issues: 'allow' as const },
  readOnlyTools: ['search_issues'],
  issuer: 'https://login.tracker.example',
  changedIssuer: null,
  clientId: null,
};
const exampleText = {
  name: 'search_issues',
  title: 'Search issues',
  description: 'Finds issues by words and labels.',
  inputSchema: { type: 'object' },
  outputSchema: null,
  annotations: null,
};
const exampleTool = {
  name: 'search_issues',
  status: 'changed' as const,
  problem: null,
  digest: digestOf(exampleText),
  listedAt: '2026-01-01T09:00:00.000Z',
  listed: toShownText(exampleText),
  accepted: toShownText({ ...exampleText, description: 'Finds issues by words.' }),
};

const path = '/config/mcp/servers';
const tag = 'External MCP servers';
const slugParam = z.string().meta({ description: 'The slug of the server', examples: ['tracker'] });
const params = z.strictObject({ slug: slugParam });
const toolParams = z.strictObject({
  slug: slugParam,
  name: z.string().meta({ description: 'The name of the tool', examples: ['search_issues'] }),
});

export function mcpServerRoutes(servers: McpServers): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path,
      operationId: 'listMcpServers',
      tag,
      summary: 'List the external MCP servers',
      description: 'Sorted by name.',
      policy: byAdministrators,
      success: { status: 200, data: z.strictObject({ servers: z.array(serverSchema) }) },
      example: { data: { servers: [example] } },
      async handle() {
        return { data: { servers: (await servers.list()).map(toShown) } };
      },
    }),
    defineRoute({
      method: 'POST',
      path,
      operationId: 'addMcpServer',
      tag,
      summary: 'Add an external MCP server',
      description: `At most ${maxServers}. People then connect their own accounts. The first connection lists its tools, and agents get those that you accept.`,
      policy: { ...byAdministrators, freshProof: 'always' },
      body: addSchema,
      errors: ['quota_exceeded', 'name_conflict'],
      success: { status: 201, data: serverSchema },
      example: { body: exampleInput, data: { ...example, issuer: null } },
      async handle({ auditContext, body }) {
        return { data: toShown(await servers.add(auditContext, body)) };
      },
    }),
    defineRoute({
      method: 'PATCH',
      path: `${path}/{slug}`,
      operationId: 'changeMcpServer',
      tag,
      summary: 'Change an external MCP server',
      description:
        'Omitted fields do not change; `tools` and `readOnlyTools` are replaced as a whole. Another `url` removes all connections, accepted tools and rules of tools, because they belong to another server. Another `auth`, and an issuer in place of an earlier one, remove all connections. Any of the three removes `client`, unless the request sends it. The first secret of a `client` moves `issuer` to `changedIssuer` and removes all connections, unless the request sends `issuer`. `endedConnections` says how many.',
      policy: { ...byAdministrators, freshProof: 'sometimes' },
      params,
      body: changeSchema,
      errors: ['not_found', 'state_conflict'],
      success: { status: 200, data: changedSchema },
      example: { body: { enabled: false }, data: { ...example, enabled: false, endedConnections: 0 } },
      async handle({ auditContext, params: { slug: of }, body, staleProof }) {
        const stale = await staleProof();
        const { server, endedConnections } = await servers.change(auditContext, of, body, stale);
        return { data: { ...toShown(server), endedConnections } };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: `${path}/{slug}`,
      operationId: 'deleteMcpServer',
      tag,
      summary: 'Delete an external MCP server',
      description: 'Also removes the connections of all people and the accepted tools.',
      policy: byAdministrators,
      params,
      errors: ['not_found'],
      success: { status: 204, empty: true },
      async handle({ auditContext, params: { slug: of } }) {
        await servers.remove(auditContext, of);
        return { data: undefined };
      },
    }),
    defineRoute({
      method: 'GET',
      path: `${path}/{slug}/tools`,
      operationId: 'listMcpServerTools',
      tag,
      summary: 'List the tools of an external MCP server',
      description:
        'Each has the accepted text and the text that the server lists now. The text comes from the server: read it as data. Agents get a tool only while both are the same.',
      policy: byAdministrators,
      params,
      errors: ['not_found'],
      success: {
        status: 200,
        data: z.strictObject({
          total: z.number().int().describe('How many tools the server lists, at most 1000'),
          accepted: z.number().int().describe('How many of them agents get, unless a rule hides them'),
          tools: z.array(toolSchema),
        }),
      },
      example: { data: { total: 1, accepted: 0, tools: [exampleTool] } },
      async handle({ params: { slug: of } }) {
        const all = (await servers.tools(of)).map(toShownTool);
        const accepted = all.filter(({ status }) => status === 'accepted').length;
        return { data: { total: all.length, accepted, tools: all } };
      },
    }),
    defineRoute({
      method: 'POST',
      path: `${path}/{slug}/tools/{name}/accept`,
      operationId: 'acceptMcpServerTool',
      tag,
      summary: 'Accept a tool of an external MCP server',
      description:
        'Agents get the tool with exactly this name, title, description and schemas. When the server changes any of them, or its annotations, the tool is refused until you accept it again.',
      policy: byAdministrators,
      params: toolParams,
      body: z
        .strictObject({ digest: z.string().max(100).describe('Digest of the text that you read') })
        .meta({ id: 'McpToolAcceptance' }),
      errors: ['not_found', 'state_conflict'],
      success: { status: 200, data: toolSchema },
      example: {
        body: { digest: exampleTool.digest },
        data: { ...exampleTool, status: 'accepted', accepted: exampleTool.listed },
      },
      async handle({ auditContext, params: { slug: of, name }, body }) {
        return { data: toShownTool(await servers.accept(auditContext, of, name, body.digest)) };
      },
    }),
  ];
}

function isServerUrl(text: string): boolean {
  const parsed = URL.parse(text);
  if (parsed === null || parsed.username !== '' || parsed.password !== '') return false;
  if (text.includes('?') || text.includes('#')) return false;
  return parsed.protocol === 'https:' || (parsed.protocol === 'http:' && isLoopback(parsed.hostname));
}

function toShown(server: McpServer) {
  return { ...server, tools: { ...server.tools }, readOnlyTools: [...server.readOnlyTools] };
}

function toShownTool({ name, listed, listedDigest, listedAt, accepted, acceptedDigest }: ServerTool) {
  const isSame = acceptedDigest === listedDigest;
  return {
    name,
    status:
      acceptedDigest === null ? ('new' as const) : isSame ? ('accepted' as const) : ('changed' as const),
    problem: problemOf(listed),
    digest: listedDigest,
    listedAt: timestamp(listedAt),
    listed: toShownText(listed),
    accepted: accepted && toShownText(accepted),
  };
}

function toShownText({ title, description, inputSchema, outputSchema, annotations }: ToolText) {
  return {
    title,
    description,
    inputSchema: JSON.stringify(inputSchema),
    outputSchema: outputSchema && JSON.stringify(outputSchema),
    annotations: annotations && JSON.stringify(annotations),
  };
}
