import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openCluster } from './cluster.ts';

/** An API server that sends only the head of a response. */
async function stallingServer(status: number) {
  const server = createServer((_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.flushHeaders();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const folder = mkdtempSync(join(tmpdir(), 'postern-cluster-'));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });
  // The server listens on TCP.
  const { port } = server.address() as AddressInfo;
  const config = {
    // Without it, the client rejects plain http.
    clusters: [
      { name: 'one', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } },
    ],
    users: [{ name: 'one', user: {} }],
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'one' } }],
    'current-context': 'one',
  };
  const kubeconfig = join(folder, 'kubeconfig');
  writeFileSync(kubeconfig, JSON.stringify(config));
  return await openCluster({ namespace: 'environments', kubeconfig });
}

test.each([
  [200, 'Kubernetes cannot be reached: no answer within 30 s.'],
  [503, 'Kubernetes answers: status 503'],
])('a server that sends no body after its status %i is not waited for', async (status, message) => {
  const cluster = await stallingServer(status);
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  // The head arrives, so only the body has a short limit.
  const shorter = vi
    .spyOn(AbortSignal, 'timeout')
    .mockImplementationOnce(timeout)
    .mockImplementationOnce((ms) => timeout(ms / 1_000));
  onTestFinished(() => shorter.mockRestore());
  await expect(cluster.list('pods')).rejects.toThrow(message);
});
