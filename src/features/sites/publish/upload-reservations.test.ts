import { expect, test } from 'vitest';
import { FakeClock } from '../../../../test/clock.ts';
import { hour } from '../../../core/clock.ts';
import { createUploadReservations } from './upload-reservations.ts';

const ada = { kind: 'user', id: 'usr_ada' } as const;
const ben = { kind: 'user', id: 'usr_ben' } as const;
const mib = 1024 * 1024;
const full = expect.objectContaining({ code: 'quota_exceeded' });

test('what an owner sends and does not publish has a bound, in one upload and over all, and is forgotten after an hour', () => {
  const clock = new FakeClock();
  const reservations = createUploadReservations({ clock });
  for (let sent = 0; sent < 4; sent++) {
    const upload = reservations.reserve(ada, 4 * mib);
    upload.take(mib);
    upload.awaitPublish([{ digest: `digest ${sent}`, size: mib }]);
    upload.release();
  }
  const more = reservations.reserve(ada, 4 * mib);
  expect(() => more.take(1)).toThrow(full);
  more.release();
  reservations.reserve(ben, 4 * mib).take(4 * mib);
  clock.advance(hour);
  reservations.reserve(ada, 4 * mib).take(4 * mib);
});

test('uploads that grow beside each other are counted together; what is refused counts no more', () => {
  const reservations = createUploadReservations({ clock: new FakeClock() });
  const [one, other] = [reservations.reserve(ada, 8 * mib), reservations.reserve(ada, 8 * mib)];
  const grow = () => {
    for (let taken = 0; taken < 8; taken++) {
      one.take(mib);
      other.take(mib);
    }
  };
  expect(grow).toThrow(full);
  other.release();
  one.release();
  one.release();
  reservations.reserve(ada, 8 * mib).take(8 * mib);
});

test('the same content counts once, however often it is tried, and no more when it is published', () => {
  const reservations = createUploadReservations({ clock: new FakeClock() });
  const content = { digest: 'the same', size: 3 * mib };
  const tries = reservations.reserve(ada, 8 * mib);
  for (let tried = 0; tried < 100; tried++) {
    tries.take(content.size);
    tries.awaitPublish([content]);
  }
  tries.release();
  const beside = reservations.reserve(ada, 4 * mib);
  beside.take(mib);
  expect(() => beside.take(1)).toThrow(full);
  beside.release();
  reservations.publish(ada, [content.digest, 'another']);
  reservations.reserve(ada, 4 * mib).take(4 * mib);
});

test('contents beyond those that are counted once count each time they are sent', () => {
  const clock = new FakeClock();
  const reservations = createUploadReservations({ clock });
  const tiny = Array.from({ length: 50_000 }, (_, at) => ({ digest: `tiny ${at}`, size: 1 }));
  reservations
    .reserve(ada, mib)
    .awaitPublish([...tiny, { digest: 'one more', size: mib }, { digest: 'one more', size: mib }]);
  expect(() => reservations.reserve(ada, 2 * mib + 50_000).take(1)).toThrow(full);
  clock.advance(hour);
  reservations.reserve(ada, 2 * mib).take(mib);
});
