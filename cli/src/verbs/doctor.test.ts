import { expect, test } from 'vitest';
import { clockFinding, versionFinding } from './doctor.ts';
import verbs from '../verbs.json' with { type: 'json' };

test('a clock that differs by more than 30 seconds is named, with its direction', () => {
  expect(clockFinding(-2_000).state).toBe('ok');
  expect(clockFinding(30_000).state).toBe('ok');
  expect(clockFinding(95_000)).toMatchObject({
    state: 'failed',
    message: expect.stringContaining('95 s ahead of'),
  });
  expect(clockFinding(-95_000)).toMatchObject({
    state: 'failed',
    message: expect.stringContaining('95 s behind'),
  });
  expect(clockFinding(Number.NaN).state).toBe('advice');
});

test('another version is advice, and a server without one is no Postern', () => {
  const origin = 'https://postern.example.com';
  expect(versionFinding(verbs.version, origin).state).toBe('ok');
  expect(versionFinding('9.9.9', origin)).toMatchObject({
    state: 'advice',
    fix: expect.stringContaining('@9.9.9'),
  });
  expect(versionFinding(null, origin).state).toBe('failed');
});
