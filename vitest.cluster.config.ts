import { defineConfig } from 'vitest/config';
import { figuresReporter } from './test/faults/figures-reporter.ts';

// The image and the chart in a real Kubernetes. npm run test:cluster starts it, and runs this inside its namespaces.
export default defineConfig({
  test: {
    include: ['test/cluster/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 5 * 60_000,
    hookTimeout: 2 * 60_000,
    reporters: ['default', figuresReporter],
  },
});
