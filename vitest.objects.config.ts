import { defineConfig } from 'vitest/config';
import { figuresReporter } from './test/faults/figures-reporter.ts';

// Suites on a real S3 server. npm run test:objects
export default defineConfig({
  test: {
    include: ['test/objects/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    reporters: ['default', figuresReporter],
  },
});
