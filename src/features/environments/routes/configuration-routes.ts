import { z } from 'zod';
import { callerKinds, type RequestOrigin } from '../../../core/caller.ts';
import { defineRoute, type Route } from '../../../platform/http.ts';
import { publishedSchema, readConfigurationFile } from '../../configuration-file/configuration-file.ts';
import type { Branches } from '../preview/branches.ts';
import {
  branchValidationSchema,
  repositoryName,
  validateSchema,
  validationSchema,
} from './configuration-schemas.ts';
import { branchName } from '../../../platform/schemas.ts';

type ConfigurationRouteDeps = {
  readonly uiUrl: string;
  readonly branches: Pick<Branches, 'configurationFile'>;
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

const readers = { callers: callerKinds, scope: 'repos:read', role: 'user', identity: 'people' } as const;

export function configurationRoutes({ uiUrl, branches, reportKeys }: ConfigurationRouteDeps): Route[] {
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
      // For a key in a cookie, which no route takes.
      errors: ['invalid_credential'],
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
      policy: readers,
      // JSON makes a text of 256 KiB larger, because it escapes line breaks and quotation marks.
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
        return { data: validate(body.content) };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/schema/validate',
      operationId: 'validateConfigurationFileOfBranch',
      tag: 'Repository configuration file',
      summary: 'Validate the postern.yaml of a branch',
      description:
        'Reads the file at the newest commit of the branch from the git server. A branch without the file is a success, with `valid` false.',
      policy: readers,
      query: z.strictObject({
        repository: repositoryName,
        branch: branchName.optional().describe('Default: the default branch of the repository'),
      }),
      errors: ['repo_not_onboarded', 'invalid_repository', 'invalid_branch', 'git_unavailable'],
      success: { status: 200, data: branchValidationSchema },
      example: {
        data: { valid: false, problems: [exampleProblem], sha: '8c36b1a0f2d94b5e7c6a1f3b8d2e4c5a6b7f8091' },
      },
      async handle({ caller, query, origin }) {
        const file = await branches.configurationFile(caller, query.repository, query.branch);
        const { sha, text } = file;
        if (text === null) return { data: { valid: false, problems: [file.missing], sha } };
        reportKeys(text, origin);
        return { data: { ...validate(text), sha } };
      },
    }),
  ];
}

function validate(content: string) {
  const read = readConfigurationFile(content);
  return { valid: read.kind === 'valid', problems: read.kind === 'valid' ? [] : [...read.problems] };
}

async function* once(text: string): AsyncIterable<string> {
  yield text;
}
