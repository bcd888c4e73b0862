import type { Section } from '../documents/fields.ts';

/** Labels of the models for agents. fields.test.ts compares path and default with the server's. */
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
