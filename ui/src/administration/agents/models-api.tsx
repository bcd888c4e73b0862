import { Alert } from '@mantine/core';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import common from '../admin.module.css';
import type { Current, DocumentApi, Version } from '../documents/document-api.ts';
import { modelsOf } from '../documents/fields.ts';
import type { Tree } from '../documents/values.ts';

/** The models that definitions may name, read and changed as a document. */
export const modelsApi: DocumentApi = {
  name: 'models',
  async read(signal) {
    return toCurrent(await unwrap(api.GET('/config/agents/models', signal === undefined ? {} : { signal })));
  },
  async tryOut(next, etag) {
    const params = { query: { dryRun: true }, header: { 'If-Match': etag } } as const;
    const { data } = await unwrap(api.PUT('/config/agents/models', { params, body: toModels(next) }));
    return data.dryRun === null ? null : <Named by={data.dryRun.named} />;
  },
  async write(next, etag) {
    const params = { header: { 'If-Match': etag } };
    return toCurrent(await unwrap(api.PUT('/config/agents/models', { params, body: toModels(next) })));
  },
  async history(page, signal) {
    const params = { query: { page, limit: 10 } };
    const { data, metadata } = await unwrap(
      api.GET('/config/agents/models/history', { params, ...(signal === undefined ? {} : { signal }) }),
    );
    return { items: data.map(toVersion), pages: metadata.pagination.total };
  },
  async revert(version, etag) {
    const params = { header: { 'If-Match': etag } };
    return toCurrent(await unwrap(api.POST('/config/agents/models/revert', { params, body: { version } })));
  },
  trial: 'Open a definition, and choose among its models.',
};

/** Models that the change removes although definitions name them. */
function Named({ by: named }: { by: NonNullable<Schemas['AgentModelsChange']['dryRun']>['named'] }) {
  if (named.length === 0) return null;
  return (
    <Alert color="yellow" title="Postern refuses this change">
      Definitions name these models. Choose another model in the definitions first.
      <ul className={common['list']}>
        {named.map(({ model, definitions }) => (
          <li key={model}>
            {model}: {definitions.join(', ')}
          </li>
        ))}
      </ul>
    </Alert>
  );
}

function toModels(tree: Tree): Schemas['AgentModels'] {
  const models = modelsOf(tree['models']);
  return { models: models.map(({ name, note }) => ({ name: name.trim(), note: note.trim() })) };
}

function toVersion({ version, changedAt, changedBy, models }: Schemas['AgentModelsVersion']): Version {
  return { version, changedAt, changedBy, value: { models } };
}

function toCurrent({ data, etag }: { data: Schemas['AgentModelsVersion']; etag: string | null }): Current {
  return { ...toVersion(data), etag: etag ?? '' };
}
