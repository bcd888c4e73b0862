import { type Page } from './layout.ts';
import { errorPage } from './messages.ts';

/** The pages on the way to an Environment. A refusal says the same whatever the reason was. */
const home = { href: '/', label: 'Go to the start page' };

export function noSuchEnvironmentPage(requestId: string): Page {
  return errorPage({
    title: 'There is no such Environment',
    message: 'The link may be mistyped, or this account may not open the Environment.',
    hint: 'An Environment with the access “owner” opens only for its creator.',
    requestId,
    retry: home,
  });
}

export function environmentGonePage(requestId: string): Page {
  return errorPage({
    title: 'This Environment has ended',
    message: 'It was torn down, its lease ended, or its address changed.',
    hint: 'The link of an Environment stays the same when its address changes.',
    requestId,
    retry: home,
  });
}

export function environmentNotReadyPage(requestId: string): Page {
  return errorPage({
    title: 'This Environment has no address yet',
    message: 'None of its services has an address yet. Try again in a moment.',
    requestId,
    retry: home,
  });
}

export function environmentsOffPage(requestId: string): Page {
  return errorPage({
    title: 'Environments are switched off',
    message: 'An administrator has switched Environments off for everyone. No data is lost.',
    requestId,
    retry: home,
  });
}
