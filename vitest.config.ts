import { defineConfig } from 'vitest/config';
import { figuresReporter } from './test/faults/figures-reporter.ts';

const minute = 60_000;

type Suite = {
  readonly setup?: readonly string[];
  readonly workers: 1 | 2 | 3;
  /** Milliseconds for one test. */
  readonly testMs: number;
  /** Milliseconds for one hook; absent = as for a test. */
  readonly hookMs?: number;
};

const database = 'test/global-setup.ts';
/** Tests of git, builds, processes and databases as programs. They have processes of their own, because a large process starts programs slowly. */
const programs = [
  'src/composition/backends/backends.test.ts',
  'src/operations/{commands,secrets}.test.ts',
  'src/operations/doctor/doctor.test.ts',
  'src/platform/database/embedded*.test.ts',
  'src/platform/git/*.test.ts',
  'src/features/environments/preview/{branches,preview}.test.ts',
  'src/features/builds/*.test.ts',
  'test/api/environments/*.test.ts',
  'test/gateway/environment-processes.test.ts',
];

/** What the code, its texts and its documents are held to: a part of `npm run check`. */
const house = ['test/{boundaries,citations,docs,plain-english}.test.ts'];

/** The suites besides `npm test`, each in the folder test/NAME: `npm run test:NAME` (CONTRIBUTING.md says what each needs). */
const suites: Readonly<Record<string, Suite>> = {
  // Pages in Debian's Chromium.
  browser: { setup: [database], workers: 2, testMs: 3 * minute },
  // The rendered chart, with the real Helm 3 and 4.
  chart: { setup: ['scripts/chart-tools.ts'], workers: 2, testMs: 3 * minute },
  // The bundled command line as a process, against a real server.
  cli: { setup: ['cli/build.ts'], workers: 2, testMs: 5 * minute },
  // Clients that four generators make of the OpenAPI document, and agents on two SDKs, against a real server.
  clients: { workers: 1, testMs: 3 * minute },
  // The image and the chart in a real Kubernetes; test/cluster/run.sh starts it and runs this inside its namespaces.
  cluster: { workers: 1, testMs: 5 * minute },
  // Builds that a real machine runs, also those that mean harm.
  engines: { setup: [database], workers: 1, testMs: 2 * minute },
  // The engine of Environments in a real Kubernetes, which runs every command: test/cluster/run.sh starts it for this suite too.
  'engines-cluster': { workers: 1, testMs: 5 * minute },
  // Whole programs, processes that end and servers that are cut off: one at a time.
  faults: { workers: 1, testMs: 15 * minute, hookMs: 2 * minute },
  // Generated requests, conversations and archives.
  fuzz: { setup: [database], workers: 1, testMs: 30 * minute, hookMs: 2 * minute },
  // The commands of docs/tutorial.md and docs/how-to, typed as written against whole programs.
  guides: { workers: 2, testMs: 5 * minute },
  // Whole programs that are killed at every moment; nothing here measures a time, so two run at once.
  kills: { workers: 2, testMs: 15 * minute, hookMs: 2 * minute },
  // A real Keycloak, started once for all files.
  keycloak: { setup: [database, 'test/keycloak/global-setup.ts'], workers: 1, testMs: 2 * minute },
  // The layout of deploy/systemd and deploy/nginx, as real processes.
  machines: { workers: 1, testMs: 2 * minute },
  // A real S3 server.
  objects: { workers: 1, testMs: 2 * minute, hookMs: minute },
};

function project(name: string, { setup = [], workers, testMs, hookMs = testMs }: Suite) {
  return {
    name,
    globalSetup: [...setup],
    pool: 'forks' as const,
    maxWorkers: workers,
    testTimeout: testMs,
    hookTimeout: hookMs,
    // A test that passes does not wait, so a busy machine may take long; the message of a poll still comes before the test's own limit.
    expect: { poll: { timeout: testMs / 2 } },
    // Projects of different size cannot share one group; npm scripts run one project at a time.
    sequence: { groupOrder: workers },
  };
}

/** The files of such a project share processes, modules and databases, which takes half the time: see test/replace-builtin.ts. */
function ownProcesses(name: string) {
  return { ...project(name, { setup: [database], workers: 3, testMs: 5 * minute }), isolate: false };
}

export default defineConfig({
  test: {
    reporters: ['default', figuresReporter],
    tags: [
      {
        name: 'core',
        description: 'One story for each page, in a browser: npm run test:browser -- --tags-filter core.',
      },
      { name: 'flood', description: 'Thousands of requests, rows or generated cases: npm run test:floods.' },
      {
        name: 'sql',
        description: 'The database decides the result: npm run test:sql runs these on PostgreSQL.',
      },
    ],
    projects: [
      {
        test: {
          ...ownProcesses('main'),
          include: [
            'src/**/*.test.ts',
            'ui/src/**/*.test.ts',
            'cli/{*,src/**/*}.test.ts',
            'test/**/*.test.ts',
          ],
          exclude: [
            ...Object.keys(suites).map((name) => `test/${name}/**`),
            ...programs,
            ...house,
            'node_modules/**',
          ],
        },
      },
      { test: { ...ownProcesses('programs'), include: programs } },
      { test: { ...ownProcesses('house'), include: house } },
      ...Object.entries(suites).map(([name, suite]) => ({
        test: { ...project(name, suite), include: [`test/${name}/**/*.test.ts`] },
      })),
    ],
  },
});
