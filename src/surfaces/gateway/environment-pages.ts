import { type LabelledEnvironment, type ServedService } from '../../features/environments/environments.ts';
import { type Html, html } from '../web/html.ts';
import { page } from '../web/pages/layout.ts';
import type { GatewayAnswer } from './answer.ts';
import { permissionsPolicy } from './response-headers.ts';

/** Pages at the host of an Environment, for a person who may open it. */
const refreshSeconds = 5;

/** The Environment was torn down, its lease ended, or it has another address. */
export const gone = shown(410, {
  title: 'This Environment has ended',
  body: html`<h1>This Environment has ended</h1>
<p class="lead">It was torn down, its lease ended, or its address changed.</p>
<p>If someone gave you the address, ask for the link of the Environment. The link stays the same when the address changes.</p>`,
});

/** Reloads itself until the service answers. */
export function notReady(environment: LabelledEnvironment, service: ServedService): GatewayAnswer {
  const { title, words } = stateOf(environment, service);
  const reason = service.reason ?? environment.statusMessage;
  const answer = shown(503, {
    title,
    body: html`<h1>${title}</h1>
<p class="lead">${words}</p>
${reason !== null && html`<p>${reason}</p>`}
<p>This page reloads itself every ${refreshSeconds} seconds.</p>`,
  });
  const retry = { 'retry-after': String(refreshSeconds), refresh: String(refreshSeconds) };
  return { ...answer, headers: { ...answer.headers, ...retry } };
}

export const processGone = shown(502, {
  title: 'The service did not answer',
  body: html`<h1>The service did not answer</h1>
<p class="lead">Its process ended or closed the connection during the request. Try again in a moment.</p>`,
});

const busy = shown(503, {
  title: 'The service has too many connections',
  body: html`<h1>The service has too many connections</h1>
<p class="lead">The gateway has as many connections to it in use as it allows. Try again in a moment.</p>`,
});
export const tooBusy: GatewayAnswer = {
  ...busy,
  headers: { ...busy.headers, 'retry-after': String(refreshSeconds) },
};

/** `reason`: a sentence about what is wrong with it. */
export const badAnswer = (reason: string) =>
  shown(502, {
    title: 'The service sent an invalid answer',
    body: html`<h1>The service sent an invalid answer</h1>
<p class="lead">${reason} The gateway passes on strict HTTP/1.1 only.</p>`,
  });

export const tooSlow = shown(504, {
  title: 'The service did not answer in time',
  body: html`<h1>The service did not answer in time</h1>
<p class="lead">Its process took too long. Try again in a moment.</p>`,
});

function stateOf({ status }: LabelledEnvironment, { name, status: step }: ServedService) {
  if (status === 'paused') return { title: `${name} is paused`, words: 'The Environment is paused.' };
  const titles = {
    waiting: [`${name} is waiting`, 'Its deploy is queued, or another service must be ready first.'],
    building: [`${name} is being built`, 'The build command runs.'],
    starting: [`${name} is starting`, 'The process runs, and does not answer its health check yet.'],
    ready: [`${name} is starting`, 'The gateway does not have it yet.'],
    asleep: [`${name} is asleep`, 'It was stopped because nobody used it.'],
    failed: [`${name} does not run`, 'Its build or its process failed.'],
    inactive: [`${name} is switched off`, 'The Environment runs without this service.'],
  } as const;
  const [title, words] = titles[step];
  return { title, words };
}

function shown(status: number, made: { title: string; body: Html }): GatewayAnswer {
  const { document, contentSecurityPolicy } = page(made);
  return {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': contentSecurityPolicy,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'permissions-policy': permissionsPolicy,
    },
    body: document,
  };
}
