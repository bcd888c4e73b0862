import type { Section } from '../documents/fields.ts';

/** Labels of the access configuration. fields.test.ts compares paths and defaults with the server's. */
export const signInSections: readonly Section[] = [
  {
    title: 'Sign-ins',
    says: 'Limits what clients may do before they are signed in. Wrong passwords have separate limits.',
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
