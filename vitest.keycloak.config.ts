import { defineConfig } from 'vitest/config';
import { figuresReporter } from './test/faults/figures-reporter.ts';

// Suites against a real Keycloak, started once for all of them. npm run test:keycloak
export default defineConfig({
  test: {
    include: ['test/keycloak/**/*.test.ts'],
    globalSetup: ['test/global-setup.ts', 'test/keycloak/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: ['default', figuresReporter],
  },
});
