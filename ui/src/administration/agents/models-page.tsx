import { getRouteApi } from '@tanstack/react-router';
import { PageHead } from '../../lists/page-head.tsx';
import { DocumentView } from '../documents/document-view.tsx';
import { TextLink } from '../text-link.tsx';
import { modelSections } from './model-fields.ts';
import { modelsApi } from './models-api.tsx';

const route = getRouteApi('/administration/admin/agents/models');

/** The models that definitions may name. */
export function ModelsPage() {
  const navigate = route.useNavigate();
  const { view = 'settings', page = 1 } = route.useSearch();
  return (
    <>
      <TextLink to="/admin/agents" size="sm">
        ← Agents
      </TextLink>
      <PageHead
        title="Models for agents"
        intro="The models that definitions may name. Postern runs no model and stores no key of a provider."
      />
      <DocumentView
        api={modelsApi}
        sections={modelSections}
        view={view}
        page={page}
        onView={(next) => void navigate({ search: next === 'history' ? { view: next } : {} })}
        onPage={(next) => void navigate({ search: { view: 'history', page: next } })}
      />
    </>
  );
}
