import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: [
      'test/faults/**',
      'test/browser/**',
      'test/chart/**',
      'test/fuzz/**',
      'test/keycloak/**',
      'test/objects/**',
      'node_modules/**',
    ],
    globalSetup: ['test/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: ['default'],
  },
});
