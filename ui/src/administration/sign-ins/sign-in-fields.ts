import { bounds } from '../documents/bounds.ts';
import { sectionsOf } from '../documents/fields.ts';

/** Labels of the access configuration. */
export const signInSections = sectionsOf(bounds.AccessConfig, [
  {
    title: 'Sign-ins',
    says: 'Limits what clients may do before they are signed in. Wrong passwords have separate limits.',
    fields: [
      {
        path: 'signInsPerAddressPerMinute',
        label: 'Sign-ins from one address',
        says: 'In any 60 seconds, on each web process. Further sign-ins are answered with 429. Raise it where many people share one address. The default with Keycloak is 600.',
        unit: 'a minute',
      },
    ],
  },
  {
    title: 'Fresh sign-ins',
    says: 'A browser that was left open, or a stolen session, cannot create a key.',
    fields: [
      {
        path: 'freshProofMinutes',
        label: 'A sign-in is fresh for',
        says: 'Creating a key, an account or a wider policy needs a sign-in that is not older. 0 switches this off.',
        unit: 'minutes',
      },
    ],
  },
  {
    title: 'Second factor',
    says: 'After the password, Postern asks for a passkey or a recovery code. A sign-in with a passkey alone has both factors.',
    fields: [
      {
        path: 'secondFactor',
        label: 'Required of',
        says: 'People without a passkey add one at their next sign-in. Sessions and connected clients stay. You need a passkey yourself to require it. With Keycloak, Keycloak decides.',
        labels: { optional: 'Nobody', administrators: 'Administrators', everyone: 'Everyone' },
      },
    ],
  },
]);
