import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { BuildLimits, DesiredProcess } from '../contract.ts';
import { buildObjects, type Place, serviceNameOf, serviceObjects } from './objects.ts';

const place: Place = {
  namespace: 'environments',
  podImage: 'registry.example.com/postern:1',
  transferUrl: 'http://postern-web-files.postern.svc:80/api/v2/environment-files',
};
const limits: BuildLimits = {
  timeMs: 90_500,
  processes: 100,
  memoryBytes: 1_000_000_000,
  fileBytes: 2_000_000,
  diskBytes: 10_000_000_000,
  outputFiles: 1_000,
};
const job = {
  id: 'job_one',
  image: 'node:24',
  command: 'npm ci && echo "$HOME" $$ $(date)',
  directory: 'web',
  output: 'dist',
  variables: { COLOR: 'blue & "$(green)"' },
  secrets: { TOKEN: 'a-secret' },
};
const process: DesiredProcess = {
  service: 'api',
  revision: 'first',
  artifact: { digest: '0'.repeat(64), size: 1 },
  image: 'node:24',
  command: 'node server.js',
  port: 8080,
  health: '/healthz',
  variables: { COLOR: 'blue', TOKEN: 'replaced' },
  secrets: { TOKEN: 'a-secret' },
  redacted: [],
  memoryBytes: 256_000_000,
  milliCpu: 500,
  logBytes: 100_000,
  isAsleep: false,
};
const tickets = { source: 'ticket-of-the-source', output: 'ticket-of-the-output' };

const owner = { apiVersion: 'v1', kind: 'Owner', name: 'owner', uid: 'one' };

const serviceOf = (changes: Partial<DesiredProcess> = {}) =>
  serviceObjects('env_one', { ...process, ...changes }, 'node:24', 'ticket-of-the-tree', limits, place);

const buildOf = () => buildObjects(job, limits, tickets, place);

describe('what is asked of Kubernetes', () => {
  // A changed Deployment restarts every service: read the difference before you accept it with `-u`.
  test.each<[name: string, objects: readonly object[]]>([
    ['build', [buildOf().job, ...buildOf().owned(owner)]],
    ['static-build', [buildObjects({ ...job, command: null, image: null }, limits, tickets, place).job]],
    ['service', [serviceOf().deployment(1), ...serviceOf().owned(owner)]],
    ['asleep', [serviceOf({ isAsleep: true, health: null }).deployment(0)]],
  ])('golden/%s.yaml', async (name, objects) => {
    const text = objects
      .map((one) => stringify(one, { lineWidth: 110, aliasDuplicateObjects: false }))
      .join('---\n');
    await expect(text).toMatchFileSnapshot(join(import.meta.dirname, `golden/${name}.yaml`));
  });

  test('names are DNS labels, and no two services share one', () => {
    const long = 'a-service-with-the-longest-name-that-a-dns-label-can-have-63-63';
    const names = [
      serviceNameOf('env_one', 'api'),
      serviceNameOf('env_two', 'api'),
      serviceNameOf('env_one', long),
      serviceNameOf('env_one', `${long.slice(0, -1)}x`),
    ];
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/);
  });

  test('only the container of a ticket sees it', () => {
    const { job: made, owned } = buildOf();
    const pod = made.spec?.template.spec;
    const containers = [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])];
    const ofName = (name: string) => JSON.stringify(containers.find((one) => one.name === name));
    expect(ofName('build')).not.toMatch(/ticket|-source|-output/i);
    expect([ofName('fetch').includes('-output'), ofName('send').includes('-source')]).toEqual([false, false]);
    expect(JSON.stringify(owned(owner).map(({ metadata }) => metadata))).not.toContain('ticket-of');
  });

  test('an id that cannot be a label is refused', () => {
    expect(() => buildObjects({ ...job, id: 'a/b' }, limits, tickets, place)).toThrow(/^An id is/);
  });
});
