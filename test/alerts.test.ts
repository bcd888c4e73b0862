import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';

// Prometheus itself judges the rules: each one fires for its fault, and none fires in an hour of ordinary work.

const file = join(import.meta.dirname, '../deploy/prometheus/alerts.yaml');
/** In CI a missing promtool is a failure; elsewhere these tests are skipped. It is part of Debian's package prometheus. */
const isMissing = process.env['CI'] !== 'true' && spawnSync('promtool', ['--version']).error !== undefined;

type Rule = {
  readonly alert: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
};
type RulesFile = { readonly groups: readonly { readonly rules: readonly Rule[] }[] };

/** Series → its values, one for each minute: `7` stays, `0+2` grows by two. */
type Series = Readonly<Record<string, string>>;

const ordinary: Series = {
  'postern_part_up{instance="web-1",part="database"}': '1',
  postern_feed_age_seconds: '0.2',
  postern_limiter_local_total: '3',
  'postern_data_free_bytes{instance="web-1"}': '5000000000',
  'postern_identity_check_seconds_count{result="answered"}': '0+60',
  'postern_identity_check_seconds_count{result="unavailable"}': '2',
  'postern_http_requests_total{route="/api/v2/sites",status="2xx"}': '0+600',
  'postern_http_requests_total{route="/api/v2/sites",status="5xx"}': '0+1',
  'postern_http_requests_total{route="/api/v2/webhooks/git/:repositoryId",status="2xx"}': '0+3',
  'postern_http_requests_total{route="/api/v2/webhooks/git/:repositoryId",status="4xx"}': '0+1',
  'postern_content_requests_total{status="2xx"}': '0+600',
  'postern_content_requests_total{status="5xx"}': '0+1',
  'postern_http_request_seconds_bucket{le="0.1"}': '0+590',
  'postern_http_request_seconds_bucket{le="+Inf"}': '0+600',
  'postern_job_runs_total{job_name="sleep",result="failed"}': '1',
  'postern_job_last_done_seconds{job_name="seal"}': '0+60',
  postern_audit_denials_dropped_total: '4',
  postern_grants_corrupt_total: '1',
  'process_resident_memory_bytes{instance="web-1"}': '500000000',
  'postern_memory_limit_bytes{instance="web-1"}': '1600000000',
  postern_build_oldest_queued_seconds: '120',
  'postern_builds_ended_total{result="failed"}': '0+2',
  'postern_builds_ended_total{result="mistake"}': '1',
  'postern_environment_retries_total{cause="engine"}': '2',
  'postern_environment_retries_total{cause="git"}': '0+2',
  'postern_environment_retries_total{cause="mistake"}': '1',
  'postern_agent_calls_total{result="done",tool="list_sites"}': '0+50',
  'postern_agent_calls_total{result="refused",tool="list_sites"}': '0+50',
  'postern_agent_calls_total{result="failed",tool="list_sites"}': '0+1',
  'postern_agent_calls_total{result="done",tool="external"}': '0+9',
  'postern_agent_calls_total{result="failed",tool="external"}': '0+1',
  'postern_mcp_connections{status="broken"}': '7',
  'postern_token_exchanges_total{result="exchanged"}': '0+2',
  'postern_token_exchanges_total{result="claim"}': '0+1',
  'postern_token_exchanges_total{result="unavailable"}': '1',
};

/** What differs from an ordinary hour. `labels`: those that the alert adds to its own. */
type Fault = { readonly series: Series; readonly labels?: Readonly<Record<string, string>> };

const faults: Readonly<Record<string, Fault>> = {
  PosternPartDown: {
    series: { 'postern_part_up{instance="web-1",part="database"}': '0' },
    labels: { instance: 'web-1', part: 'database' },
  },
  PosternFeedSilent: { series: { postern_feed_age_seconds: '9' } },
  PosternLimiterAlone: { series: { postern_limiter_local_total: '0+5' } },
  PosternDiskNearlyFull: {
    series: { 'postern_data_free_bytes{instance="web-1"}': '100000000' },
    labels: { instance: 'web-1' },
  },
  PosternIdentityAway: {
    series: { 'postern_identity_check_seconds_count{result="unavailable"}': '0+2' },
  },
  PosternErrors: {
    series: { 'postern_http_requests_total{route="/api/v2/sites",status="5xx"}': '0+60' },
  },
  PosternSitesErrors: { series: { 'postern_content_requests_total{status="5xx"}': '0+60' } },
  PosternSlow: {
    series: {
      'postern_http_request_seconds_bucket{le="0.1"}': '0+500',
      'postern_http_request_seconds_bucket{le="2.5"}': '0+600',
    },
  },
  PosternJobFailing: {
    series: { 'postern_job_runs_total{job_name="sleep",result="failed"}': '0+1' },
    labels: { job_name: 'sleep' },
  },
  PosternNobodySeals: { series: { 'postern_job_last_done_seconds{job_name="seal"}': '60' } },
  PosternDenialsDropped: { series: { postern_audit_denials_dropped_total: '0+1' } },
  PosternGrantsCorrupt: { series: { postern_grants_corrupt_total: '0+1' } },
  PosternMemoryNearlyFull: {
    series: { 'process_resident_memory_bytes{instance="web-1"}': '1500000000' },
    labels: { instance: 'web-1' },
  },
  PosternBuildsWait: { series: { postern_build_oldest_queued_seconds: '0+60' } },
  // One Environment, whose step Postern retries once a minute.
  PosternEngineAway: { series: { 'postern_environment_retries_total{cause="engine"}': '0+1' } },
  PosternDefect: { series: { 'postern_environment_retries_total{cause="mistake"}': '0+0.1' } },
  PosternAgentCallsFail: {
    series: { 'postern_agent_calls_total{result="failed",tool="list_sites"}': '0+50' },
  },
  PosternExternalServersFail: {
    series: { 'postern_agent_calls_total{result="failed",tool="external"}': '0+20' },
  },
  PosternConnectionsBreak: { series: { 'postern_mcp_connections{status="broken"}': '7+1' } },
  PosternIssuerAway: { series: { 'postern_token_exchanges_total{result="unavailable"}': '0+1' } },
  PosternWebhooksRefused: {
    series: {
      'postern_http_requests_total{route="/api/v2/webhooks/git/:repositoryId",status="4xx"}': '0+4',
    },
  },
};

/** More than the hour that a rule looks back. */
const minutes = 90;

function testOf(name: string, series: Series, expected: readonly object[]): object {
  return {
    name,
    interval: '1m',
    input_series: Object.entries({ ...ordinary, ...series }).map(([one, values]) => ({
      series: one,
      values: `${values}x${minutes}`,
    })),
    alert_rule_test: expected,
  };
}

function fired({ alert, labels, annotations }: Rule, more: Readonly<Record<string, string>> = {}): object {
  const filled = Object.entries(annotations).map(([name, text]) => [
    name,
    text.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => more[label] ?? ''),
  ]);
  const expected = { exp_labels: { ...labels, ...more }, exp_annotations: Object.fromEntries(filled) };
  return { eval_time: `${minutes}m`, alertname: alert, exp_alerts: [expected] };
}

test.skipIf(isMissing)(
  'each alert fires for its fault, and none fires in an hour of ordinary work',
  async () => {
    const { groups } = parse(await readFile(file, 'utf8')) as RulesFile;
    const rules = groups.flatMap((group) => group.rules);
    expect(rules.map(({ alert }) => alert).sort()).toEqual(Object.keys(faults).sort());
    const quiet = rules.map(({ alert }) => ({ eval_time: `${minutes}m`, alertname: alert, exp_alerts: [] }));
    const tests = [
      testOf('ordinary', {}, quiet),
      ...rules.map((rule) => {
        const { series, labels } = faults[rule.alert] ?? { series: {} };
        return testOf(rule.alert, series, [fired(rule, labels)]);
      }),
    ];
    const folder = await mkdtemp(join(tmpdir(), 'postern-alerts-'));
    try {
      const document = join(folder, 'tests.yaml');
      await writeFile(document, stringify({ rule_files: [file], evaluation_interval: '1m', tests }));
      // Rejects with what promtool prints when a rule does otherwise.
      await promisify(execFile)('promtool', ['test', 'rules', document]);
    } finally {
      await rm(folder, { recursive: true });
    }
  },
);
