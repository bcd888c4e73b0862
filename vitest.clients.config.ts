import { defineConfig } from 'vitest/config';

// Clients that four generators make of the OpenAPI document, against a real server. npm run test:clients
export default defineConfig({
  test: {
    include: ['test/clients/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 180_000,
    hookTimeout: 180_000,
    reporters: ['default'],
  },
});
