import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { systemRandom } from '../../core/ids.ts';
import { memoryKv } from '../../platform/kv/memory-kv.ts';
import { createLog } from '../../platform/log.ts';
import { createAuditRelay, createAuditRelayReader } from './audit-relay.ts';
import { createGrantSigner } from './grant-signer.ts';

/** A gateway's relay and a worker's reader over one store; what the reader gets is recorded. */
function setUp() {
  const clock = new FakeClock();
  const kv = memoryKv({ clock });
  const signer = createGrantSigner(['a secret of the tests, of some length'], systemRandom);
  const seen: string[] = [];
  const refused: { reason: string; count: unknown }[] = [];
  const auditRelayReader = createAuditRelayReader({
    kv,
    signer,
    seenKey: (digest) => void seen.push(digest),
    tx: async (work) =>
      await work({
        audit: {
          append: async ({ reason, details }) =>
            void refused.push({ reason: reason ?? '', count: details?.['count'] }),
        },
      }),
    log: createLog({ level: 'silent' }),
  });
  return { auditRelay: createAuditRelay({ kv, signer, clock }), auditRelayReader, clock, seen, refused };
}

const from = (address: string) => ({ address, agent: 'curl' });

test('a flood of made-up keys from one address leaves room for a real one from another', async () => {
  const { auditRelay, auditRelayReader, seen } = setUp();
  for (let times = 0; times < 1_000; times++)
    auditRelay.noteKeys(
      Array.from({ length: 250 }, (_, number) => `made-up-${times}-${number}`),
      from('192.0.2.66'),
    );
  auditRelay.noteKeys(['the real one'], from('198.51.100.7'));
  for (let turn = 0; turn < 3; turn++) {
    await auditRelay.flush();
    await auditRelayReader.run();
  }
  expect(seen).toContain('the real one');
  expect(seen.length).toBeLessThanOrEqual(51);
});

test('refusals that fill their places keep no key from being told, and each key is told once', async () => {
  const { auditRelay, auditRelayReader, seen, refused } = setUp();
  for (let number = 0; number < 2_000; number++)
    auditRelay.note(
      'site',
      { reason: 'no_grant', targetId: `site${number}` },
      from(`10.0.${number % 250}.1`),
    );
  auditRelay.noteKeys(['a key'], from('198.51.100.7'));
  auditRelay.noteKeys(['a key'], from('198.51.100.7'));
  await auditRelay.flush({ all: true });
  for (let turn = 0; turn < 20; turn++) {
    await auditRelayReader.run();
    await auditRelay.flush({ all: true });
  }
  expect(seen).toEqual(['a key']);
  const told = refused.reduce((sum, { count }) => sum + Number(count), 0);
  expect(told).toBe(2_000);
});
