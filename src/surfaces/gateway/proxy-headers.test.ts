import { expect, test } from 'vitest';
import { answerHeaders } from './proxy-headers.ts';

const kind = { isPrivate: false, isHttps: false };
const passkeysOff = 'publickey-credentials-get=(), publickey-credentials-create=()';

test.each([
  [204, []],
  [200, ['Content-Length', '5']],
  // It says how long the body of a GET would be.
  [304, ['Content-Length', '5']],
])('the length that a process says is passed on where HTTP has one: %i', (status, length) => {
  const sent = answerHeaders(['Content-Length', '5'], kind, status);
  const ours = ['X-Robots-Tag', 'noindex', 'X-Accel-Buffering', 'no', 'Permissions-Policy', passkeysOff];
  expect(sent).toEqual([...length, ...ours]);
});

const policies = (...written: readonly string[]) => {
  const sent = answerHeaders(
    written.flatMap((value) => ['Permissions-Policy', value]),
    kind,
    200,
  );
  return sent.filter((_, at) => sent[at - 1] === 'Permissions-Policy');
};

test.each([
  'camera=()',
  'camera=*, fullscreen=(self "https://a.example")',
  'publickey-credentials-get=*',
  'geolocation=(self);report-to=main, usb=self',
])('the policy %j of a process is sent, and passkeys are off after it', (value) => {
  expect(policies(value, 'gamepad=()')).toEqual([value, 'gamepad=()', passkeysOff]);
});

test.each([
  'camera',
  'camera=(),',
  "camera 'none'",
  'camera=(self',
  'camera=(self)x',
  'Camera=()',
  '',
  `camera=(${'a'.repeat(5_000)}"`,
])('a policy that browsers cannot read is dropped, because it would take ours with it: %j', (value) => {
  expect(policies(value, 'gamepad=()')).toEqual(['gamepad=()', passkeysOff]);
});
