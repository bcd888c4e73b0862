import type { Section } from '../documents/fields.ts';

/** The models for agents in the words of their page. fields.test.ts holds path and default to the server's. */
export const modelSections: readonly Section[] = [
  {
    title: 'Models',
    says: 'In the order in which definitions offer them.',
    fields: [
      {
        path: 'models',
        label: 'Offered to definitions',
        says: 'A model that a definition names cannot be removed.',
        kind: 'models',
        standard: [],
      },
    ],
  },
];
