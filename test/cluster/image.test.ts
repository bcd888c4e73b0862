import { readFileSync } from 'node:fs';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { administrator } from '../faults/program.ts';
import { newRepository } from '../git-repository.ts';
import { httpsGitServer, sshGitServer } from '../git-servers.ts';
import { create, run } from './cluster.ts';
import { visit } from './visit.ts';

/** The image that the Containerfile builds, as one process on the embedded database. */
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'all', namespace: 'default' },
  spec: {
    // The loopback addresses of the defaults are then those of this suite, too.
    hostNetwork: true,
    containers: [
      {
        name: 'all',
        image: 'localhost/postern:test',
        imagePullPolicy: 'Never',
        env: Object.entries({
          BOOTSTRAP_ADMIN_EMAIL: administrator.email,
          BOOTSTRAP_ADMIN_PASSWORD: administrator.password,
        }).map(([name, value]) => ({ name, value })),
        readinessProbe: { httpGet: { host: '127.0.0.1', path: '/readyz', port: 9464 }, periodSeconds: 1 },
        resources: { limits: { memory: '768Mi' } },
        securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
        volumeMounts: [
          { name: 'data', mountPath: '/data' },
          { name: 'tmp', mountPath: '/tmp' },
        ],
      },
    ],
    securityContext: { runAsNonRoot: true, fsGroup: 65_532 },
    volumes: [
      { name: 'data', emptyDir: {} },
      { name: 'tmp', emptyDir: {} },
    ],
  },
};
const kubectl = (...args: readonly string[]) => run('kubectl', '--namespace=default', ...args);
afterAll(() => kubectl('delete', 'pod', 'all', '--ignore-not-found'));

test('the built image starts without changes, and a site is published and opened in it', async () => {
  await create(pod);
  await kubectl('wait', '--for=condition=Ready', 'pod/all', '--timeout=2m');
  await visit('http://localhost:3000');
  const status = '{.status.containerStatuses[0].restartCount}';
  expect(await kubectl('get', 'pod', 'all', `--output=jsonpath=${status}`)).toBe('0');
});

/** What the program of the image prints as JSON when it runs this module, with `input` in its first argument. */
async function inImage(module: string, input: unknown): Promise<unknown> {
  const command = ['node', '--input-type=module', `--eval=${module}`, '--', JSON.stringify(input)];
  return JSON.parse(await kubectl('exec', 'all', '--', ...command));
}

test('the image reads repositories over https and ssh', async () => {
  const repository = newRepository();
  onTestFinished(repository.remove);
  const sha = repository.commit({ 'postern.yaml': 'version: 1\n', 'web/index.html': 'hello' });
  const https = await httpsGitServer(repository.folder);
  onTestFinished(https.stop);
  const ssh = await sshGitServer();
  onTestFinished(ssh.stop);
  const { origin, privateKey, knownHosts } = ssh;
  const read = await inImage(
    `
      import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
      import { gitIn } from '/app/src/platform/git/git.ts';
      import { createOutbound } from '/app/src/platform/outbound.ts';
      const { authority, remotes, sha } = JSON.parse(process.argv[1]);
      writeFileSync('/tmp/authority.pem', authority);
      const resolve = async () => [{ address: '127.0.0.1' }];
      const outbound = createOutbound({ allowsPrivate: true, resolve });
      const git = gitIn('/tmp/git', { outbound, searchPath: process.env.PATH, caFile: '/tmp/authority.pem' });
      await git.prepare();
      const found = [];
      for (const [index, remote] of remotes.entries()) {
        const folder = '/tmp/checked-out-' + index;
        mkdirSync(folder);
        found.push(await git.branches(remote), await git.readFile(remote, 'main', 'postern.yaml'));
        const out = await git.checkOut(remote, { branch: 'main', sha, patterns: ['web/**'] }, folder);
        found.push(out.kind === 'ok' ? readFileSync(folder + '/web/index.html', 'utf8') : out);
      }
      console.log(JSON.stringify(found));
    `,
    {
      sha,
      authority: readFileSync(https.caFile, 'utf8'),
      remotes: [
        { id: 'repo_1', cloneUrl: https.url('.git'), credential: null },
        {
          id: 'repo_2',
          cloneUrl: ssh.url(`${repository.folder}/.git`),
          credential: { kind: 'ssh_key', origin, privateKey, knownHosts },
        },
      ],
    },
  );
  const each = [
    { kind: 'ok', value: [{ name: 'main', sha }] },
    { kind: 'ok', value: { sha, subject: 'A change', text: 'version: 1\n' } },
    'hello',
  ];
  expect(read).toEqual([...each, ...each]);
});

test('the image has git and ssh, and neither a shell nor a package manager', async () => {
  const programs = ['git', 'ssh', 'sh', 'bash', 'dash', 'apt', 'apt-get', 'dpkg', 'npm', 'busybox'];
  const found = await inImage(
    `
      import { existsSync } from 'node:fs';
      const places = [...process.env.PATH.split(':'), '/bin', '/sbin', '/usr/bin', '/usr/sbin'];
      const isHere = (name) => places.some((place) => existsSync(place + '/' + name));
      console.log(JSON.stringify(JSON.parse(process.argv[1]).filter(isHere)));
    `,
    programs,
  );
  expect(found).toEqual(['git', 'ssh']);
});
