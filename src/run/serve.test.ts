import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../config/read.ts';
import { listeningAt, serve } from './serve.ts';

const bound = (address: string, port: number) => ({
  address,
  port,
  family: address.includes(':') ? 'IPv6' : 'IPv4',
});

test.each([
  ['http://localhost:3000', bound('127.0.0.1', 3000), []],
  ['http://ui.localhost:3000', bound('::1', 3000), []],
  ['http://127.0.0.1', bound('127.0.0.1', 80), []],
  ['http://[::1]:3000', bound('::1', 3000), []],
  ['http://localhost:0', bound('127.0.0.1', 41_231), ['http://127.0.0.1:41231']],
  ['https://postern.example.com', bound('0.0.0.0', 3000), ['http://0.0.0.0:3000']],
  ['https://localhost', bound('::', 3000), ['http://[::]:3000']],
])('the start tells where it listens when %s does not say so', (uiUrl, address, told) => {
  expect(listeningAt(uiUrl, address)).toEqual(told);
});

test('a first start whose ports other programs have names each of them, and makes no database', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'postern-busy-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const settings = ['PORT', 'GATEWAY_PORT', 'METRICS_PORT'];
  const taken: Record<string, string> = {};
  for (const setting of settings) {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
    // The type of address() also covers sockets with a path, which this is not.
    taken[setting] = String((other.address() as AddressInfo).port);
  }
  const config = readConfig({ ...taken, DATA_DIR: dataDir });
  const mistakes = settings.map((setting) => ({
    setting,
    problem: expect.stringContaining(`${taken[setting]} is used by another program`),
  }));
  await expect(serve(config)).rejects.toMatchObject({ mistakes });
  expect(existsSync(join(dataDir, 'database'))).toBe(false);
});
