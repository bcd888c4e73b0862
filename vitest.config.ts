import { readdirSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

/** The folders of the suites with a configuration of their own: vitest.NAME.config.ts runs test/NAME. */
const ownSuites = readdirSync(import.meta.dirname)
  .map((name) => /^vitest\.(\w+)\.config\.ts$/.exec(name)?.[1])
  .filter((suite) => suite !== undefined)
  .map((suite) => `test/${suite}/**`);

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: [...ownSuites, 'node_modules/**'],
    globalSetup: ['test/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: ['default'],
  },
});
