import { defineConfig } from 'vitest/config';

// The fuzzer over our own document. npm run test:fuzz runs it, and then schemathesis.
export default defineConfig({
  test: {
    include: ['test/fuzz/**/*.test.ts'],
    globalSetup: ['test/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 30 * 60_000,
    hookTimeout: 2 * 60_000,
    reporters: ['default'],
  },
});
