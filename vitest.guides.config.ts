import { defineConfig } from 'vitest/config';

// The commands of docs/tutorial.md and docs/how-to, typed as written against whole programs. npm run test:guides
export default defineConfig({
  test: {
    include: ['test/guides/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: ['default'],
  },
});
