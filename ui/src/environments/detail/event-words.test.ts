import { expect, test } from 'vitest';
import type { Schemas } from '../../api/contract.ts';
import { changesIn, deedOf, deployOf } from './event-words.ts';

type Event = Schemas['AuditEvent'];

function event(name: string, facts: Partial<Event> = {}): Event {
  const none = { id: 'evt_1', time: '', details: {}, outcome: 'success' as const };
  // The sentence depends on these fields only.
  return { ...none, event: name, ...facts } as Event;
}

test('an event is shown as a sentence, even if the page does not know its kind', () => {
  const words = [
    event('environment.grant_issued'),
    event('build.failed', { outcome: 'failure' }),
    event('environment.changed', { outcome: 'denied' }),
    event('environment.was_moved'),
  ].map(deedOf);
  expect(words).toEqual([
    'A browser got access',
    'A deploy failed',
    'Settings changed: refused',
    'Was moved',
  ]);
});

test('a change names fields and values as the pages do', () => {
  const before = { access: 'owner', autoTrack: false, deployEnabled: true, trackDefaultBranches: false };
  const after = { access: 'members', autoTrack: true, deployEnabled: false, trackDefaultBranches: false };
  expect(changesIn(event('environment.changed', { details: { before, after } }))).toEqual([
    'Who may open it: Only its creator → Everyone who can sign in',
    'Follow the branch: off → on',
    'Deploys: on → paused',
  ]);
  const [lease] = changesIn(
    event('environment.extended', {
      details: {
        before: { expiresAt: '2026-11-29T22:07:57.731Z' },
        after: { expiresAt: '2026-11-30T22:07:57.731Z' },
      },
    }),
  );
  expect(lease).toMatch(/^Lease ends: .*29.* → .*30/);
  expect(lease).not.toContain('T22:07');
});

test('an event about a deploy names it', () => {
  const details = { build: 'bld_one', sha: 'abc' };
  expect(deployOf(event('build.deployed', { details }))).toEqual({ id: 'bld_one', sha: 'abc' });
  expect(deployOf(event('environment.changed'))).toBeNull();
});
