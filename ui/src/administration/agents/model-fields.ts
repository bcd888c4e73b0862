import { bounds } from '../documents/bounds.ts';
import { sectionsOf } from '../documents/fields.ts';

/** Labels of the models for agents. */
export const modelSections = sectionsOf(bounds.AgentModels, [
  {
    title: 'Models',
    says: 'In the order in which definitions offer them.',
    fields: [
      {
        path: 'models',
        label: 'Offered to definitions',
        says: 'A model that a definition names cannot be removed.',
      },
    ],
  },
]);
