import type { Section } from '../documents/fields.ts';

/** The access configuration in the words of its page. fields.test.ts holds paths and defaults to the server's. */
export const signInSections: readonly Section[] = [
  {
    title: 'Sign-ins',
    says: 'Limits what clients may do before they are signed in. Wrong passwords have limits of their own.',
    fields: [
      {
        path: 'signInsPerAddressPerMinute',
        label: 'Sign-ins from one address',
        says: 'In any 60 seconds, on each web process. Further sign-ins are answered with 429. Raise it where many people share one address. The default with Keycloak is 600.',
        kind: 'number',
        unit: 'a minute',
        min: 1,
        max: 100_000,
        standard: 60,
      },
    ],
  },
];
