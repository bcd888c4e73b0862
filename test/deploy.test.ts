import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createMetrics } from '../src/surfaces/web/metrics.ts';

// What operators load into Prometheus and Grafana says only what the program tells.
const root = join(import.meta.dirname, '..');
const read = (path: string) => readFile(join(root, path), 'utf8');

async function namesTold(): Promise<Set<string>> {
  const metrics = createMetrics();
  metrics.watchProcess();
  const all = await metrics.registry.getMetricsAsJSON();
  return new Set(
    all.flatMap(({ name, type }) =>
      String(type) === 'histogram' ? [name, `${name}_bucket`, `${name}_count`] : [name],
    ),
  );
}

const named = (text: string) => text.match(/\b(?:postern|process|nodejs)_[a-z0-9_]+/g) ?? [];

test('every metric of the alert rules and of the dashboard is one that the program has', async () => {
  const told = await namesTold();
  const rules = (await read('deploy/prometheus/alerts.yaml')).match(/expr: .+/g) ?? [];
  const { panels } = JSON.parse(await read('deploy/grafana/postern.json')) as {
    panels: { title: string; targets: { expr: string }[] }[];
  };
  const expressions = [...rules, ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))];
  expect(expressions.length).toBeGreaterThan(20);
  for (const expression of expressions) {
    const names = named(expression);
    expect([expression, names.length > 0]).toEqual([expression, true]);
    expect(names.filter((name) => !told.has(name))).toEqual([]);
  }
});

test('every metric of ours is on the dashboard or in a rule', async () => {
  const shown = new Set([
    ...named(await read('deploy/prometheus/alerts.yaml')),
    ...named(await read('deploy/grafana/postern.json')),
  ]);
  const all = await createMetrics().registry.getMetricsAsJSON();
  const missing = all
    .map(({ name }) => name)
    .filter((name) => !shown.has(name) && !shown.has(`${name}_bucket`));
  expect(missing).toEqual([]);
});

test('every alert names a page that is there', async () => {
  const rules = await read('deploy/prometheus/alerts.yaml');
  const alerts = rules.match(/- alert: /g) ?? [];
  const pages = [...rules.matchAll(/runbook: (\S+)/g)].map(([, page = '']) => page);
  expect(pages).toHaveLength(alerts.length);
  expect(pages.filter((page) => !existsSync(join(root, page)))).toEqual([]);
});
