import { callerKinds, type RequestOrigin } from '../../core/caller.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { publishedSchema, readConfigurationFile } from './environments.ts';
import { validateSchema, validationSchema } from './schemas.ts';

type EnvironmentRouteDeps = {
  readonly uiUrl: string;
  /** Notifies the owners of live keys in the text. */
  readonly reportKeys: (text: string, origin: RequestOrigin) => void;
};

const schemaPath = '/schema/postern.json';

const exampleProblem = {
  line: 4,
  column: 5,
  path: 'services.web.build.comand',
  rule: 'unknown_field',
  message: 'comand is not a field of services.web.build.',
  fix: 'Did you mean command?',
};

export function environmentRoutes({ uiUrl, reportKeys }: EnvironmentRouteDeps): Route[] {
  const schema = JSON.stringify(publishedSchema(`${uiUrl}/api/v2${schemaPath}`));
  return [
    defineRoute({
      method: 'GET',
      path: schemaPath,
      operationId: 'getConfigurationFileSchema',
      tag: 'Repository configuration file',
      summary: 'Read the JSON Schema of postern.yaml',
      description: 'For editors: they complete and check the fields. Needs no credential.',
      policy: { callers: 'anyone', identity: 'none' },
      success: { status: 200, stream: ['application/schema+json'] },
      handle: async () => ({
        stream: once(schema),
        contentType: 'application/schema+json',
        fileName: 'postern.json',
        headers: { 'cache-control': 'public, max-age=3600' },
      }),
    }),
    defineRoute({
      method: 'POST',
      path: '/schema/validate',
      operationId: 'validateConfigurationFile',
      tag: 'Repository configuration file',
      summary: 'Validate a postern.yaml',
      description:
        'Reports every problem at once, each with its line, column and fix. Stores nothing. A file with problems is a success, with `valid` false.',
      policy: { callers: callerKinds, scope: 'repos:read', role: 'user', identity: 'people' },
      // A text of 256 KiB is larger as JSON, which escapes line breaks and quotation marks.
      bodyBytes: 1_048_576,
      body: validateSchema,
      // A key in the file is one of the problems.
      looksForKeysIn: ['content'],
      success: { status: 200, data: validationSchema },
      example: {
        body: { content: 'version: 1\nservices:\n  web:\n    build: { comand: npm ci }\n' },
        data: { valid: false, problems: [exampleProblem] },
      },
      handle({ body, origin }) {
        reportKeys(body.content, origin);
        const read = readConfigurationFile(body.content);
        const problems = read.kind === 'valid' ? [] : [...read.problems];
        return { data: { valid: read.kind === 'valid', problems } };
      },
    }),
  ];
}

async function* once(text: string): AsyncIterable<string> {
  yield text;
}
