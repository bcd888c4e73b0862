import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { hour } from '../../core/clock.ts';
import { createUploadRoom } from './upload-room.ts';

const ada = { kind: 'user', id: 'usr_ada' } as const;
const ben = { kind: 'user', id: 'usr_ben' } as const;
const mib = 1024 * 1024;
const full = expect.objectContaining({ code: 'quota_exceeded' });

test('what an owner sends and does not publish has a bound, in one upload and over all, and is forgotten after an hour', () => {
  const clock = new FakeClock();
  const room = createUploadRoom({ clock });
  for (let sent = 0; sent < 4; sent++) {
    const upload = room.enter(ada, 4 * mib);
    upload.take(mib);
    upload.waits([{ digest: `digest ${sent}`, size: mib }]);
    upload.leave();
  }
  const more = room.enter(ada, 4 * mib);
  expect(() => more.take(1)).toThrow(full);
  more.leave();
  room.enter(ben, 4 * mib).take(4 * mib);
  clock.advance(hour);
  room.enter(ada, 4 * mib).take(4 * mib);
});

test('uploads that grow beside each other are counted together; what is refused counts no more', () => {
  const room = createUploadRoom({ clock: new FakeClock() });
  const [one, other] = [room.enter(ada, 8 * mib), room.enter(ada, 8 * mib)];
  const grow = () => {
    for (let taken = 0; taken < 8; taken++) {
      one.take(mib);
      other.take(mib);
    }
  };
  expect(grow).toThrow(full);
  other.leave();
  one.leave();
  one.leave();
  room.enter(ada, 8 * mib).take(8 * mib);
});

test('the same content counts once, however often it is tried, and no more when it is published', () => {
  const room = createUploadRoom({ clock: new FakeClock() });
  const content = { digest: 'the same', size: 3 * mib };
  const tries = room.enter(ada, 8 * mib);
  for (let tried = 0; tried < 100; tried++) {
    tries.take(content.size);
    tries.waits([content]);
  }
  tries.leave();
  const beside = room.enter(ada, 4 * mib);
  beside.take(mib);
  expect(() => beside.take(1)).toThrow(full);
  beside.leave();
  room.publish(ada, [content.digest, 'another']);
  room.enter(ada, 4 * mib).take(4 * mib);
});

test('contents beyond those that are told apart count too, each time they come', () => {
  const clock = new FakeClock();
  const room = createUploadRoom({ clock });
  const tiny = Array.from({ length: 50_000 }, (_, at) => ({ digest: `tiny ${at}`, size: 1 }));
  room.enter(ada, mib).waits([...tiny, { digest: 'one more', size: mib }, { digest: 'one more', size: mib }]);
  expect(() => room.enter(ada, 2 * mib + 50_000).take(1)).toThrow(full);
  clock.advance(hour);
  room.enter(ada, 2 * mib).take(mib);
});
