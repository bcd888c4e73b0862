import type { ProviderViews } from '../../../features/oidc-provider/views.ts';
import { deviceCodePage, deviceConfirmPage, deviceDonePage } from './device.ts';
import { policyFor } from './layout.ts';
import { errorPage, providerSignOutPage, signedOutPage } from './messages.ts';
import { notFoundPage } from './not-found.ts';

/** The provider's pages in our layout. */
export const providerViews: ProviderViews = {
  contentSecurityPolicy: policyFor({}),
  error: ({ description, requestId }) =>
    errorPage({
      title: 'The sign-in failed',
      message: 'Postern did not accept the sign-in request of the application.',
      hint: description === undefined ? undefined : `The reason: ${description}.`,
      requestId,
      retry: { href: '/auth/login', label: 'Go to sign in' },
    }).document,
  failed: ({ requestId }) =>
    errorPage({
      title: 'Something went wrong',
      message: 'An error occurred on the server. Try again in a moment.',
      hint: 'If the error persists, give an administrator the id below. The log has the details under it.',
      requestId,
    }).document,
  nowhere: ({ requestId }) => notFoundPage(requestId).document,
  deviceExpired: ({ requestId }) =>
    errorPage({
      title: 'This page has expired',
      message: 'Connecting the device took too long, or was started in another browser.',
      requestId,
      retry: { href: '/identity/device', label: 'Start again' },
    }).document,
  deviceCode: (view) => deviceCodePage(view).document,
  deviceConfirm: (view) => deviceConfirmPage(view).document,
  deviceDone: (view) => deviceDonePage(view).document,
  signOut: (view) => providerSignOutPage(view).document,
  signedOut: () => signedOutPage().document,
};
