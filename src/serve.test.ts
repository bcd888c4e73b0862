import { expect, test } from 'vitest';
import { listeningAt } from './serve.ts';

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
