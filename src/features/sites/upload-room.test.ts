import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { hour } from '../../core/clock.ts';
import { createUploadRoom } from './upload-room.ts';

const ada = { kind: 'user', id: 'usr_ada' } as const;
const ben = { kind: 'user', id: 'usr_ben' } as const;
const mib = 1024 * 1024;

test('what an owner sends and does not publish has a bound, in one upload and over all, and is forgotten after an hour', () => {
  const clock = new FakeClock();
  const room = createUploadRoom({ clock });
  for (let sent = 0; sent < 4; sent++) {
    const upload = room.enter(ada, 4 * mib);
    upload.take(mib);
    upload.stays(mib);
  }
  const more = room.enter(ada, 4 * mib);
  expect(() => more.take(1)).toThrow(expect.objectContaining({ code: 'quota_exceeded' }));
  more.leave();
  room.enter(ben, 4 * mib).take(4 * mib);
  clock.advance(hour);
  room.enter(ada, 4 * mib).take(4 * mib);
});

test('uploads that grow beside each other are counted together; what is published or refused counts no more', () => {
  const room = createUploadRoom({ clock: new FakeClock() });
  const [one, other] = [room.enter(ada, 8 * mib), room.enter(ada, 8 * mib)];
  const grow = () => {
    for (let taken = 0; taken < 8; taken++) {
      one.take(mib);
      other.take(mib);
    }
  };
  expect(grow).toThrow(expect.objectContaining({ code: 'quota_exceeded' }));
  other.leave();
  one.leave();
  one.leave();
  room.enter(ada, 8 * mib).take(8 * mib);
});
