import { expect, test } from 'vitest';
import { redirectReceiver } from './loopback.ts';
import { refused } from '../http/tokens.ts';

const state = 'a'.repeat(20);

async function pageAfter(query: Record<string, string>) {
  const receiver = await redirectReceiver(state);
  const sent = new URLSearchParams({ state, ...query }).toString();
  const response = await fetch(`${receiver.redirectUri}?${sent}`);
  await receiver.answer();
  return { type: response.headers.get('content-type'), text: await response.text() };
}

test('after a sign-in the browser shows a page that leads back to the terminal', async () => {
  const { type, text } = await pageAfter({ code: 'abc' });
  expect(type).toBe('text/html; charset=utf-8');
  expect(text).toContain('<h1>Return to your terminal</h1>');
});

test('a declined sign-in is named in the browser and in the terminal, and nothing of the request is shown', async () => {
  const { text } = await pageAfter({ error: 'access_denied', error_description: '<b>made up</b>' });
  expect(text).toContain('<h1>You declined the sign-in</h1>');
  expect(text).not.toContain('made up');
  const answer = { error: 'access_denied', error_description: 'End-User aborted interaction' };
  expect(refused(answer).message).toBe('You declined the sign-in in the browser.');
});
