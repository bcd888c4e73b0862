import { defineConfig } from 'vitest/config';

// The layout of deploy/systemd and deploy/nginx, as real processes. npm run test:machines
export default defineConfig({
  test: {
    include: ['test/machines/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
