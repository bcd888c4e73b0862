import type { Reporter, TestModule } from 'vitest/node';
import type {} from './figures.ts';

/** Prints the suites' measurements as one table, for docs/explanation/faults.md. */
export const figuresReporter: Reporter = {
  onTestRunEnd(modules: readonly TestModule[]) {
    const lines: string[] = [];
    for (const module of modules) {
      for (const test of module.children.allTests())
        for (const { what, figure } of test.meta().figures ?? [])
          lines.push(`| ${test.name} | ${what} | ${figure} |`);
    }
    if (lines.length === 0) return;
    console.log(['', '| Test | What | Measured |', '|---|---|---|', ...lines].join('\n'));
  },
};
