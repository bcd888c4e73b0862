import { expect, test } from 'vitest';
import { answerHeaders } from './proxy-headers.ts';

test.each([
  [204, []],
  [200, ['Content-Length', '5']],
  // It says how long the body of a GET would be.
  [304, ['Content-Length', '5']],
])('the length that a process says is passed on where HTTP has one: %i', (status, length) => {
  const sent = answerHeaders(['Content-Length', '5'], { isPrivate: false, isHttps: false }, status);
  expect(sent).toEqual([...length, 'X-Robots-Tag', 'noindex', 'X-Accel-Buffering', 'no']);
});
