import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { readConfigurationFile } from '../../../src/features/configuration-file/read.ts';
import { fromLifecycle } from './lifecycle.ts';

const lifecycle = `
version: "1.0.0"
environment:
  autoDeploy: true
  ignoreFiles: ["docs/**"]
  defaultServices: [{name: web_front}]
  webhooks: [{state: deployed, type: docker}]
services:
- name: web_front
  requires: [{name: api}, {name: chart}]
  github:
    repository: acme/shop
    branchName: main
    docker:
      defaultTag: main
      app:
        dockerfilePath: ./web/Dockerfile
        ports: [3000]
        env:
          API: "https://{{{api_publicUrl}}}/v1"
          INTERNAL: "http://{{{api_internalHostname}}}:8080"
          NAME: "{{{buildUUID}}} {{{branchName}}} \${HOME}"
          TOKEN: "{{aws:shop/api:token}}"
          CHART: "{{{chart_publicUrl}}}"
          OTHER: "{{{namespace}}}"
    deployment:
      public: true
      readiness: {httpGet: {path: /healthz, port: 3000}}
      resource: {cpu: {limit: 500m}, memory: {limit: 256Mi}}
      serviceDisks: [{name: a, mountPath: /a, storageSize: 1Gi}]
- name: api
  deploymentDependsOn: [cache]
  github:
    repository: acme/shop
    branchName: main
    docker: {defaultTag: main, app: {dockerfilePath: Dockerfile, command: node, arguments: "server.js%%SPLIT%%--fast", ports: [8080]}}
- name: cache
  docker: {dockerImage: redis, defaultTag: "8", ports: [6379], deployment: {public: false}}
- name: pay
  github: {repository: acme/pay, branchName: main, docker: {defaultTag: main, app: {dockerfilePath: Dockerfile, ports: [1]}}}
- name: docs
  externalHttp: {defaultInternalHostname: docs, defaultPublicUrl: docs.example.com}
- name: chart
  helm: {chart: {name: x}}
`;

test('lifecycle.yaml becomes a valid postern.yaml, and the rest is named', () => {
  const { file, untranslated } = fromLifecycle(lifecycle);
  expect(readConfigurationFile(stringify(file))).toMatchObject({ kind: 'valid' });
  expect(file).toEqual({
    version: 1,
    environment: { ignoreFiles: ['docs/**'] },
    services: {
      'web-front': {
        build: { dockerfile: 'web/Dockerfile' },
        run: { port: 3000, health: '/healthz', resources: { cpu: '500m', memory: '256Mi' } },
        env: {
          API: '${services.api.url}/v1',
          INTERNAL: 'http://${services.api.host}:8080',
          NAME: '${environment.name} ${environment.branch} $${HOME}',
        },
        secrets: { TOKEN: 'shop-api-token' },
        requires: ['api'],
      },
      api: {
        build: { dockerfile: 'Dockerfile' },
        run: { command: 'node server.js --fast', port: 8080 },
        requires: ['cache'],
      },
      cache: { image: 'redis:8', run: { port: 6379 }, exposed: false },
      docs: { external: { url: 'https://docs.example.com' } },
    },
  });
  expect(untranslated.map(({ where }) => where)).toEqual([
    'services.web_front',
    'services.web_front',
    'services.web_front env.TOKEN',
    'services.web_front env.OTHER',
    'services.web_front deployment.serviceDisks',
    'services.api',
    'services.cache',
    'services.pay',
    'services.chart',
    'environment.autoDeploy',
    'environment.webhooks',
    'services.web-front env.CHART',
  ]);
});

test.each(['', '[]', 'services: [1, {name: 5}, {name: x, github: 1}]', 'services: {a: b}', 'a: 1'])(
  'a file %j that is no lifecycle.yaml never throws',
  (text) => {
    expect(fromLifecycle(text).file.version).toBe(1);
  },
);
