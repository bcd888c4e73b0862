import { PageHead } from '../../lists/page-head.tsx';
import { DocumentView } from '../documents/document-view.tsx';
import { TextLink } from '../text-link.tsx';
import { modelSections } from './model-fields.ts';
import { modelsApi } from './models-api.tsx';

/** The models that definitions may name. */
export function ModelsPage() {
  return (
    <>
      <TextLink to="/admin/agents" size="sm">
        ← Agents
      </TextLink>
      <PageHead
        title="Models for agents"
        intro="The models that definitions may name. Postern runs no model and stores no key of a provider."
      />
      <DocumentView api={modelsApi} sections={modelSections} />
    </>
  );
}
