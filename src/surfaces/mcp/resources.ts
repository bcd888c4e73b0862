import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError } from '@modelcontextprotocol/server';
import { AppError } from '../../core/errors.ts';
import { publishedSchema } from '../../features/configuration-file/configuration-file.ts';
import { toSelection } from '../../features/agents/definitions.ts';
import type { ToolContext } from './tool.ts';

/** Documents that an agent may read, each small enough for a conversation. */
type Resource = {
  readonly uri: string;
  readonly name: string;
  readonly title: string;
  /** The purpose, for the language model. */
  readonly description: string;
  read(context: ToolContext): Promise<unknown>;
};

const mimeType = 'application/json';

const resources: readonly Resource[] = [
  {
    uri: 'postern://postern-yaml',
    name: 'postern-yaml',
    title: 'Reference of postern.yaml',
    description: 'The JSON Schema of the file that says how a branch is built and run, with every field.',
    read: async () => publishedSchema('postern://postern-yaml'),
  },
  {
    uri: 'postern://capabilities',
    name: 'capabilities',
    title: 'Limits of this installation',
    description: 'What the person may publish and create: visibilities, lifetimes, quotas.',
    async read({ call, may }) {
      const [sites, { data: environments }] = await Promise.all([
        may('sites:read').allowed ? call<object>('readSiteCapabilities').then(({ data }) => data) : null,
        call<object>('readEnvironmentPolicyForEveryone'),
      ]);
      return { sites, environments };
    },
  },
  {
    uri: 'postern://policy',
    name: 'policy',
    title: 'What agents may do here',
    description:
      'The rule of each tool for this client, and what the client can reach. `ask`: the person approves each call.',
    async read({ policy: { allowChanges, tools, publicSites, callsPerMinute }, workspace }) {
      return {
        allowChanges,
        tools,
        publicSites,
        callsPerMinute,
        workspace: workspace && toSelection(workspace),
      };
    },
  },
];

export const listedResources = resources.map(({ uri, name, title, description }) => ({
  uri,
  name,
  title,
  description,
  mimeType,
}));

/** @throws ProtocolError */
export async function readResource(
  uri: string,
  context: ToolContext,
  onFailure: (error: unknown, name: string) => void,
) {
  const resource = resources.find((one) => one.uri === uri);
  if (resource === undefined) throw new ResourceNotFoundError(uri);
  try {
    return { contents: [{ uri, mimeType, text: JSON.stringify(await resource.read(context)) }] };
  } catch (error) {
    if (!(error instanceof AppError)) onFailure(error, resource.name);
    const message = error instanceof AppError ? error.message : 'Something went wrong on the server.';
    throw new ProtocolError(ProtocolErrorCode.InternalError, message);
  }
}
