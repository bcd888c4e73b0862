import { defineConfig } from 'vitest/config';
import { figuresReporter } from './test/faults/figures-reporter.ts';

// Suites that end processes and cut servers off: one at a time, with patience. npm run test:faults
export default defineConfig({
  test: {
    include: ['test/faults/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 15 * 60_000,
    hookTimeout: 2 * 60_000,
    reporters: ['default', figuresReporter],
  },
});
