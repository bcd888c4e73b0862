import { defineConfig } from 'vitest/config';

// The rendered chart, with the real Helm 3 and 4. npm run test:chart
export default defineConfig({
  test: {
    include: ['test/chart/**/*.test.ts'],
    globalSetup: ['scripts/chart-tools.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    reporters: ['default'],
  },
});
