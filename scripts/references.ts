import type { Command } from 'commander';
import { allRoutes } from '../src/composition/all-routes.ts';
import { configReference } from '../src/config/settings.ts';
import { errorCodes, errorRegistry } from '../src/core/errors.ts';
import { auditEvents } from '../src/features/audit/events.ts';
import { rules } from '../src/features/configuration-file/problem.ts';
import { maxFileBytes } from '../src/features/configuration-file/read.ts';
import { maxServices } from '../src/features/configuration-file/schema.ts';
import {
  maxCharacters,
  maxDepth,
  maxTokens,
  maxValues,
} from '../src/features/configuration-file/yaml-text.ts';
import { surfaces } from '../src/features/settings/surfaces.ts';
import { isLimitedChange, type Route } from '../src/platform/http.ts';
import { maxMcpBodyBytes } from '../src/surfaces/mcp/mcp-page.ts';
import { descriptorOf, mcpRevisions } from '../src/surfaces/mcp/mcp-server.ts';
import { listedPrompts } from '../src/surfaces/mcp/prompts.ts';
import { listedResources } from '../src/surfaces/mcp/resources.ts';
import { tools } from '../src/surfaces/mcp/tools.ts';
import { createCommandLine, exitCodes, pathOf } from '../src/run/command-line.ts';
import { createMetrics } from '../src/surfaces/web/metrics.ts';
import { callersInWords } from '../src/surfaces/web/openapi/callers.ts';
import { codesOf, isAnyRequestsCode } from '../src/surfaces/web/openapi/codes.ts';
import { configurationFileFields } from './configuration-file.ts';

/** The pages of docs/reference that are generated from the program: file name → text. */
export async function references(): Promise<Map<string, string>> {
  return new Map([
    ['routes.md', routesPage(await allRoutes())],
    ['errors.md', errorsPage()],
    ['events.md', eventsPage()],
    ['config.md', configPage(configReference())],
    ['commands.md', commandsPage()],
    ['metrics.md', await metricsPage()],
    ['surfaces.md', surfacesPage()],
    ['mcp.md', mcpPage()],
    ['postern-yaml.md', configurationFilePage()],
  ]);
}

function surfacesPage(): string {
  const rows = surfaces.map(({ change, owner, places }) => [
    change,
    owner,
    places.length === 0
      ? 'Outside Postern'
      : places
          .map(({ kind, title, address }) =>
            kind === 'document' ? `[${title}](${address.replace('docs/', '../')})` : `\`${address}\``,
          )
          .join(', '),
  ]);
  return page(
    'Where to configure',
    'What can be changed, which surface owns it, and where it is done: `GET /config/surfaces` and the page *Where to configure* of the web app. What is not here is not changed by other means.',
    table(['Change', 'Owner', 'Where'], rows),
  );
}

function mcpPage(): string {
  const sections = tools.map((tool) => {
    const { name, title, description } = tool;
    const { inputSchema, outputSchema } = descriptorOf(tool);
    return `## \`${name}\`\n\n${title}. ${description}\n\n${argumentsTable(inputSchema)}\n\n${resultLine(outputSchema)}`;
  });
  const sentences = [
    'The tools that agents find at `{SERVICE_UI_URL}/mcp`. [Connect an agent](../how-to/connect-an-agent.md) says how to connect one. A [transcript](mcp-transcript.md) shows two clients at work.',
    `The endpoint speaks the Model Context Protocol, revisions ${[...mcpRevisions].join(', ')}, over Streamable HTTP, without sessions and without streams. A message has at most ${maxMcpBodyBytes / 1_048_576} MiB.`,
    'A tool that destroys asks the person first: a client of 2026-07-28 with elicitation shows a form, any other client gets a `confirmation` for a second call. A tool that waits for an approval sends clients of 2026-07-28 with URL elicitation to the page, and tells any other client its address.',
    'The limits of descriptors are for the tools of Postern. A tool of an external server has at most 16 KiB with its schemas.',
    'People who connected an account at an [external MCP server](../how-to/use-external-mcp-servers.md) also find its accepted tools, as `<slug>__<tool>`. The rest of this page is about the tools of Postern.',
    'A tool calls [routes](routes.md) for the person; the same rules hold. Arguments and results are closed objects. A list returns 25 rows and `nextCursor`.',
    'A refusal is a result with `isError`, and its text is `{"error": {code, message, hint, details}}` with a [code](errors.md) of the API. An unknown tool is error -32602 of the protocol.',
    'What people wrote, such as names of sites, is data. It never appears in descriptions of tools.',
  ];
  const upload = table(
    ['Part of the request', 'Value'],
    [
      ['`PUT /mcp/uploads/{id}`', '`url` of the answer of `publish_site`'],
      [
        '`Authorization`',
        '`Bearer` and `token` of that answer; good once, for ten minutes, and nowhere else',
      ],
      ['`Content-Type`', '`application/gzip` for a tar.gz, or `application/zip`'],
      ['body', 'One archive of exactly the files of the manifest'],
    ],
  );
  const resources = table(
    ['Resource', 'Meaning'],
    listedResources.map(({ uri, description }) => [`\`${uri}\``, description]),
  );
  const prompts = table(
    ['Prompt', 'Meaning'],
    listedPrompts('any').map(({ name, description }) => [`\`${name}\``, description]),
  );
  return page(
    'MCP endpoint',
    sentences.join('\n'),
    [
      ...sections,
      `## Upload address\n\n${upload}\n\nAnswers the published site, or an [error](errors.md) of the API, in the envelope of the API.`,
      `## Resources\n\n${resources}`,
      `## Prompts\n\n${prompts}`,
    ].join('\n\n'),
  );
}

type Properties = Record<string, { type?: string; description?: string; enum?: string[] }>;

function resultLine(schema: object): string {
  // As zod writes the schema of an object.
  const { properties = {} } = schema as { properties?: Properties };
  const names = Object.keys(properties).map((name) => `\`${name}\``);
  return `Returns ${names.join(', ')}.`;
}

function argumentsTable(schema: object): string {
  // As zod writes the schema of an object.
  const { properties = {}, required = [] } = schema as { properties?: Properties; required?: string[] };
  const rows = Object.entries(properties).map(([name, { description = '', enum: values }]) => [
    `\`${name}\`${required.includes(name) ? '' : ' (optional)'}`,
    [description, values?.map((value) => `\`${value}\``).join(', ')].filter(Boolean).join(': '),
  ]);
  return rows.length === 0 ? 'No arguments.' : table(['Argument', 'Meaning'], rows);
}

function routesPage(routes: readonly Route[]): string {
  const tags = [...new Set(routes.map((route) => route.tag))];
  const sections = tags.map((tag) => {
    const rows = routes.filter((route) => route.tag === tag).map(routeRow);
    return `## ${tag}\n\n${table(['Route', 'Does', 'Callers', 'Role', 'Scope', 'Limit', 'Refuses with'], rows)}`;
  });
  return page(
    'Routes',
    'Every route below `/api/v2`: who may call it, with which role and scope, and which [limit](../explanation/rate-limit.md) ' +
      'counts it: `owner` requests with keys, `changes` what a person asks to be changed. ' +
      'Reading this page is enough to review access. Roles are required of people, scopes of keys and access tokens. ' +
      '“Refuses with” leaves out the codes that [any request](errors.md) can meet.',
    sections.join('\n\n'),
  );
}

function routeRow(route: Route): string[] {
  const { policy } = route;
  const takesKeys =
    typeof policy.callers !== 'string' &&
    policy.callers.some((kind) => kind === 'personal_key' || kind === 'service_key');
  const limits = [
    takesKeys && (route.exemptFromLimit ? 'exempt' : 'owner'),
    isLimitedChange(route) && 'changes',
  ].filter(Boolean);
  const scopes = [policy.scope, policy.tokenScope && `${policy.tokenScope} (tokens)`]
    .filter(Boolean)
    .join(', ');
  const codes = codesOf(route).filter((code) => !isAnyRequestsCode(code));
  return [
    `\`${route.method} ${route.path}\``,
    route.summary,
    callersInWords(policy),
    policy.role ?? '–',
    scopes === '' ? '–' : scopes,
    limits.length === 0 ? '–' : limits.join(', '),
    codes.map((code) => `\`${code}\``).join(' '),
  ];
}

function errorsPage(): string {
  const codes = errorCodes.toSorted((a, b) => errorRegistry[a][0] - errorRegistry[b][0]);
  return page(
    'Error codes',
    'Every failure has one of these codes in `error.code`. The list is closed; a message may change, a code does not. ' +
      'Codes marked * can meet any request.',
    table(
      ['Status', 'Code', 'Message', 'What to do'],
      codes.map((code) => {
        const [status, message, hint] = errorRegistry[code];
        return [String(status), `\`${code}\`${isAnyRequestsCode(code) ? ' *' : ''}`, message, hint];
      }),
    ),
  );
}

function eventsPage(): string {
  return page(
    'Audit events',
    'Every event the audit log can contain. Read them at `GET /api/v2/audit/events` or export them; how events are ' +
      'chained and verified is in [audit-chain.md](audit-chain.md).',
    table(
      ['Event', 'Meaning'],
      Object.entries(auditEvents).map(([name, meaning]) => [`\`${name}\``, meaning]),
    ),
  );
}

function configPage(settings: ReturnType<typeof configReference>): string {
  return page(
    'Configuration',
    'Environment variables. Every secret can also be given as a file: `NAME_FILE` holds its path. All mistakes are ' +
      'printed together at start, each with the fix. `npm start` without a workload, and commands, read all of them.',
    table(
      ['Variable', 'Meaning', 'Default', 'Secret', 'Read by'],
      settings.map(({ name, meaning, default: value, isSecret, readers }) => [
        `\`${name}\``,
        meaning,
        value,
        isSecret ? 'yes' : '–',
        readers.length === 4 ? 'every process' : readers.join(', '),
      ]),
    ),
  );
}

function commandsPage(): string {
  const nothing = () => undefined;
  const program = createCommandLine({ onSettings: nothing, onExit: nothing });
  // A group of commands has nothing to say but the names of its commands.
  const withoutGroups = (command: Command): Command[] =>
    command.commands.length === 0 ? [command] : command.commands.flatMap(withoutGroups);
  const helpOf = (command: Command) => `\`\`\`text\n${command.helpInformation().trimEnd()}\n\`\`\``;
  const sections = withoutGroups(program).map(
    (command) => `## ${pathOf(command).replace(`${program.name()} `, '')}\n\n${helpOf(command)}`,
  );
  const codes = table(
    ['Code', 'Meaning'],
    exitCodes.map(([code, meaning]) => [String(code), meaning]),
  );
  return page(
    'Commands',
    'The server and the commands for its operator, as `--help` prints them. Run a command with the [settings](config.md) of the server. ' +
      'In the image, write `node src/main.ts` for `npm start --`; [on your own machines](../how-to/run-on-your-own-machines.md), `postern-server WORKLOAD`. `postern` is the [command line](cli.md) for users.',
    [
      helpOf(program),
      `## Exit codes\n\nEvery command uses the same codes:\n\n${codes}\n\nA signal that ends a command gives 128 plus its number, such as 130 for Ctrl-C.`,
      ...sections,
    ].join('\n\n'),
  );
}

async function metricsPage(): Promise<string> {
  const metrics = await createMetrics().registry.getMetricsAsJSON();
  return page(
    'Metrics',
    'What `/metrics` on `METRICS_PORT` of every workload tells, beside memory, descriptors and the event loop under the usual names (`process_…`, `nodejs_…`). Labels are route patterns, never addresses, ids or values. A dashboard and alert rules over them: [deploy](../../deploy).',
    table(
      ['Metric', 'Type', 'Meaning'],
      metrics.map(({ name, type, help }) => [`\`${name}\``, String(type), help]),
    ),
  );
}

function configurationFilePage(): string {
  const sections = configurationFileFields().map(
    ({ path, meaning, rows }) =>
      `## ${path === '' ? 'The file' : `\`${path}\``}\n\n${meaning === '' ? '' : `${meaning}\n\n`}${table(['Field', 'Type', 'Default', 'Meaning', 'Example'], rows)}`,
  );
  return page(
    'postern.yaml',
    'The repository configuration file: the services of a repository, and the defaults of its Environments. It is in the root of the repository. ' +
      'How to write one: [the guide](../how-to/write-a-postern-yaml.md). For editors, its JSON Schema is at `/api/v2/schema/postern.json`. ' +
      'How to deploy it: [run a branch](../how-to/run-a-branch.md).',
    [
      ...sections,
      referencesSection,
      `## Rules\n\n\`POST /schema/validate\` names the rule of each problem.\n\n${table(
        ['Rule', 'Means'],
        Object.entries(rules).map(([name, meaning]) => [`\`${name}\``, meaning]),
      )}`,
      limitsSection,
    ].join('\n\n'),
  );
}

const referencesSection = `## References

The value of a variable may contain:

| Reference | Is replaced by |
|---|---|
| \`\${services.NAME.url}\` | The public address of a service, of a database its connection URL. Not of a process with \`exposed: false\`. |
| \`\${services.NAME.host}\`, \`\${services.NAME.port}\` | Its internal address. A static service has none. |
| \`\${environment.id}\`, \`\${environment.name}\`, \`\${environment.url}\` | The id and the name of the Environment, and its page in Postern. |
| \`\${environment.repository}\`, \`\${environment.branch}\`, \`\${environment.sha}\` | The repository, such as \`acme/website\`, the branch and the commit. |

Any other name is a problem, not an empty text. For a literal \`\${\`, write \`$\${\`. Other fields, such as commands, keep \`\${…}\` for the shell.`;

const limitsSection = `## Limits

At most ${maxFileBytes / 1024} KiB of UTF-8, ${maxTokens} YAML tokens, ${maxValues} values and ${maxCharacters} characters of text after every alias is replaced, ${maxDepth} levels and ${maxServices} services. Anchors and aliases work; tags,
merge keys (\`<<\`) and more than one document do not. Text such as \`yes\` is not a switch: write \`true\` or \`false\`.`;

function page(title: string, lead: string, body: string): string {
  return `# ${title}\n\n<!-- Generated by \`npm run docs\`; edits are lost. -->\n\n${lead}\n\n${body}\n`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}
