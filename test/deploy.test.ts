import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { programOptions } from '../scripts/program-options.mjs';
import { createMetrics } from '../src/surfaces/web/metrics.ts';

// What operators load into Prometheus and Grafana says only what the program tells.
const root = join(import.meta.dirname, '..');
const read = (path: string) => readFile(join(root, path), 'utf8');

/** The shape of a file of rules. */
type Rules = {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string }[];
  }[];
};

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

test('the program has every metric of the alert rules and of the dashboard', async () => {
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

test('every metric of Postern is on the dashboard or in a rule', async () => {
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

test('a container runs all workloads with the options of npm start', async () => {
  const command = /^CMD (.+)$/m.exec(await read('Containerfile'))?.[1] ?? '';
  expect(JSON.parse(command)).toEqual(['node', ...programOptions, 'src/main.ts', 'all']);
});

test('every alert names an existing page', async () => {
  const rules = await read('deploy/prometheus/alerts.yaml');
  const alerts = rules.match(/- alert: /g) ?? [];
  const pages = [...rules.matchAll(/runbook: (\S+)/g)].map(([, page = '']) => page);
  expect(pages).toHaveLength(alerts.length);
  expect(pages.filter((page) => !existsSync(join(root, page)))).toEqual([]);
});

/** The expression of an alert. @throws when there is none */
async function expressionOf(alert: string): Promise<string> {
  const { groups } = parse(await read('deploy/prometheus/alerts.yaml')) as Rules;
  const found = groups.flatMap(({ rules }) => rules).find((rule) => rule.alert === alert);
  if (found === undefined) throw new Error(`There is no alert ${alert}.`);
  return found.expr;
}

test('errors of the web app and of the sites raise separate alerts', async () => {
  for (const [alert, metric] of [
    ['PosternErrors', 'postern_http_requests_total'],
    ['PosternSitesErrors', 'postern_content_requests_total'],
  ] as const)
    expect(await expressionOf(alert)).toBe(
      `sum(rate(${metric}{status="5xx"}[5m])) / sum(rate(${metric}[5m])) > 0.02`,
    );
});

test('a missing audit chain raises an alert, even while no worker runs and no metric of it exists', async () => {
  const metrics = createMetrics();
  metrics.countJob('seal', 'done', 1_700_000_000_000);
  const [series] = (await metrics.registry.metrics()).match(/^postern_job_last_done_seconds\{.*\}/m) ?? [];
  expect(await expressionOf('PosternNobodySeals')).toBe(
    `(time() - max(${series}) > 300) or absent(${series})`,
  );
});

test('no label is one that Prometheus sets itself: it would be renamed, and the rules would miss it', async () => {
  const metrics = createMetrics();
  metrics.watchProcess();
  const labels = metrics.registry
    .getMetricsAsArray()
    .flatMap((metric) => ('labelNames' in metric ? (metric.labelNames as readonly string[]) : []));
  expect(labels).toContain('job_name');
  const given = ['job', 'instance', 'namespace', 'pod', 'container', 'service', 'endpoint', 'component'];
  expect(labels.filter((label) => given.includes(label))).toEqual([]);
});
