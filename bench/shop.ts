import { setTimeout as wait } from 'node:timers/promises';
import type { TestRepository } from '../test/git-repository.ts';
import { administrator } from '../test/faults/program.ts';
import type { Browser } from '../test/faults/browser.ts';

/** One repository with a static service and a Node process, and how a client deploys it: for E1, E5 and E6. */
const file = `version: 1
services:
  web:
    build: { image: 'node:24', command: "echo started && mkdir dist && cp index.html dist", directory: web, output: dist }
    static: {}
    routes: { /api: api }
  api:
    build: { image: 'node:24', directory: api }
    run: { command: node server.js, port: 8080 }
`;
const server = `require('node:http').createServer((q, r) => r.end('hello')).listen(process.env.PORT);`;

/** A client looks this often whether a deploy has ended, in ms. */
const lookMs = 50;

/** Returns the commit. */
export function commit(repository: TestRepository, edition: number): string {
  return repository.commit({
    'postern.yaml': file,
    'web/index.html': `<p>web ${edition}</p>`,
    'api/server.js': `// ${edition}\n${server}`,
  });
}

/** An administrator switches Environments on, and registers the repository. `changed`: of the Environment policy. */
export async function prepare(ada: Browser, repository: TestRepository, changed = {}): Promise<void> {
  await ada.signIn(administrator.email, administrator.password);
  const { policy } = await call(ada, 'GET', '/config/api-environments');
  await call(
    ada,
    'PUT',
    '/config/api-environments',
    { ...policy, enabled: true, ...changed },
    { 'if-match': '*' },
  );
  await call(ada, 'POST', '/repositories', { fullName: 'acme/shop', cloneUrl: repository.url });
}

export async function call(ada: Browser, ...asked: Parameters<Browser['api']>) {
  const { status, text, data } = await ada.api(...asked);
  if (status >= 300) throw new Error(`${asked[0]} ${asked[1]} answered ${status}: ${text.slice(0, 500)}`);
  return data;
}

/** Except `left` of them. */
export async function removeAll(ada: Browser, left = 0): Promise<void> {
  for (const { id } of (await call(ada, 'GET', '/environments')).slice(left)) {
    await call(ada, 'DELETE', `/environments/${id}`);
    await settled(ada, id, 'torn_down');
  }
}

export async function settled(ada: Browser, id: string, wanted: string): Promise<void> {
  for (;;) {
    const { status, statusMessage } = await call(ada, 'GET', `/environments/${id}`);
    if (status === wanted) return;
    if (status === 'error' || status === 'config_error') throw new Error(`${status}: ${statusMessage}`);
    await wait(lookMs);
  }
}
