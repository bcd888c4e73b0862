import type { AuditContext } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import { newId, type Random } from '../../core/ids.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { RepositorySelection } from '../keys/keys.ts';
import type { DocumentVersion } from '../settings/settings.ts';
import type { Repository } from '../repositories/repositories.ts';
import { agentModelsName, modelNamesIn } from './agent-models.ts';
import { defaultInstructionsHash } from './default-instructions.ts';
import type { AgentDefinition, AgentWorkspace } from './definition.ts';
import type { AgentDefinitionStore } from './definition-store.ts';

export const maxDefinitions = 100;

/** Repositories by name. */
type WorkspaceInput = Pick<AgentWorkspace, 'maxEnvironments' | 'environmentTtlHours' | 'maySites'> & {
  readonly repositories: RepositorySelection;
};
/** Changes nothing for the person. */
export const wholeWorkspace = {
  repositories: { mode: 'all' },
  maxEnvironments: null,
  environmentTtlHours: null,
  maySites: 'publish',
} as const satisfies WorkspaceInput;

type DefinitionInput = Omit<AgentDefinition, 'id' | 'instructionsDefault' | 'workspace'> & {
  readonly workspace: WorkspaceInput;
};
type DefinitionChange = { readonly [Field in keyof DefinitionInput]?: DefinitionInput[Field] | undefined };

type Stores = {
  readonly agentDefinitions: AgentDefinitionStore;
  readonly repositories: { findAll(fullNames: readonly string[]): Promise<Repository[]> };
  readonly documents: { current(name: string): Promise<DocumentVersion | undefined> };
  readonly audit: AuditWriter;
};

/** @throws AppError name_conflict, state_conflict when a client has another definition */
export type AgentDefinitions = {
  list(): Promise<AgentDefinition[]>;
  /** @throws AppError quota_exceeded; repo_not_found and invalid_body, as change does */
  add(auditContext: AuditContext, input: DefinitionInput): Promise<AgentDefinition>;
  /** @throws AppError not_found; so does remove */
  change(auditContext: AuditContext, id: string, change: DefinitionChange): Promise<AgentDefinition>;
  remove(auditContext: AuditContext, id: string): Promise<void>;
};

export function createAgentDefinitions(deps: {
  readonly read: { readonly agentDefinitions: Pick<AgentDefinitionStore, 'list'> };
  /** Announces the change under the topic `agents`. */
  readonly tx: Tx<Stores>;
  readonly random: Random;
}): AgentDefinitions {
  const { read, tx, random } = deps;
  return {
    list: read.agentDefinitions.list,
    add: (auditContext, input) =>
      tx(async ({ agentDefinitions, repositories, documents, audit }) => {
        const others = await agentDefinitions.hold();
        if (others.length >= maxDefinitions)
          throw new AppError('quota_exceeded', {
            message: `There are ${maxDefinitions} agent definitions, which is the maximum.`,
            hint: 'Delete a definition that is no longer needed.',
          });
        const workspace = await workspaceOf(repositories, input.workspace);
        const definition = normal({
          ...input,
          id: newId(random, 'agd'),
          instructionsDefault: writtenAgainst(input.instructions),
          workspace,
        });
        requireUnused(definition, others);
        await requireOffered(definition, documents);
        await agentDefinitions.put(definition);
        await audit.append(eventOf(auditContext, 'definition_added', { after: facts(definition) }));
        return definition;
      }),
    change: (auditContext, id, change) =>
      tx(async ({ agentDefinitions, repositories, documents, audit }) => {
        const all = await agentDefinitions.hold();
        const before = definitionIn(all, id);
        const { workspace: reach, ...fields } = change;
        const sent = Object.entries(fields).filter(([, value]) => value !== undefined);
        const workspace = reach === undefined ? before.workspace : await workspaceOf(repositories, reach);
        // Sending them again unchanged confirms them against the current default.
        const instructionsDefault =
          change.instructions === undefined
            ? before.instructionsDefault
            : writtenAgainst(change.instructions);
        const after = normal({ ...before, ...Object.fromEntries(sent), instructionsDefault, workspace });
        requireUnused(after, all);
        await requireOffered(after, documents);
        await agentDefinitions.put(after);
        await audit.append(
          eventOf(auditContext, 'definition_changed', {
            before: facts(before),
            after: facts(after),
          }),
        );
        return after;
      }),
    remove: (auditContext, id) =>
      tx(async ({ agentDefinitions, audit }) => {
        const before = definitionIn(await agentDefinitions.hold(), id);
        await agentDefinitions.remove(id);
        await audit.append(eventOf(auditContext, 'definition_removed', { before: facts(before) }));
      }),
  };
}

function writtenAgainst(instructions: string): string | null {
  return instructions.trim() === '' ? null : defaultInstructionsHash;
}

/** Bound to ids, so that a rename changes nothing. */
async function workspaceOf(
  repositories: Stores['repositories'],
  input: WorkspaceInput,
): Promise<AgentWorkspace> {
  const { repositories: selection, ...limits } = input;
  if (selection.mode === 'all') return { ...limits, repositories: { mode: 'all' }, repositoryNames: [] };
  const found = await repositories.findAll(selection.repositories);
  const known = new Set(found.map(({ fullName }) => fullName.toLowerCase()));
  const missing = selection.repositories.filter((name) => !known.has(name.toLowerCase()));
  if (missing.length > 0)
    throw new AppError('repo_not_found', {
      message: `The repository ${missing[0]} is not registered.`,
      details: { missing },
    });
  return {
    ...limits,
    repositories: { mode: 'selected', repositoryIds: found.map(({ id }) => id) },
    repositoryNames: found.map(({ fullName }) => fullName),
  };
}

/** What an audit event records. */
function facts({ workspace, ...definition }: AgentDefinition) {
  return { ...definition, workspace: toSelection(workspace) };
}

/** Adds the current names of the repositories. */
export function toSelection({ repositories, repositoryNames, ...limits }: AgentWorkspace) {
  return {
    ...limits,
    repositories:
      repositories.mode === 'all'
        ? { mode: repositories.mode }
        : { mode: repositories.mode, repositories: [...repositoryNames] },
  };
}

function normal(definition: AgentDefinition): AgentDefinition {
  return { ...definition, clients: [...new Set(definition.clients)].sort() };
}

async function requireOffered({ model }: AgentDefinition, documents: Stores['documents']): Promise<void> {
  if (model === null) return;
  const offered = modelNamesIn(await documents.current(agentModelsName));
  if (offered.includes(model)) return;
  const choices = offered.length === 0 ? 'There is none yet' : `They are ${offered.slice(0, 10).join(', ')}`;
  const problem = `must be one of the models for agents, and ${model} is not`;
  throw new AppError('invalid_body', {
    message: `model: ${problem}`,
    hint: `${choices}. An administrator adds models with PUT /config/agents/models.`,
    details: { fields: [{ field: 'model', problem }] },
  });
}

function definitionIn(definitions: readonly AgentDefinition[], id: string): AgentDefinition {
  const found = definitions.find((one) => one.id === id);
  if (found === undefined)
    throw new AppError('not_found', {
      message: 'There is no such agent definition.',
      hint: 'List the agent definitions to see their ids.',
    });
  return found;
}

function requireUnused({ id, name, clients }: AgentDefinition, all: readonly AgentDefinition[]): void {
  const others = all.filter((one) => one.id !== id);
  if (others.some((one) => one.name === name))
    throw new AppError('name_conflict', {
      message: `Another agent definition has the name ${name}.`,
      hint: 'Choose another name.',
    });
  for (const client of clients) {
    const other = others.find((one) => one.clients.includes(client));
    if (other !== undefined)
      throw new AppError('state_conflict', {
        message: `The client ${client} has the definition ${other.name} already.`,
        hint: 'Take the client out of that definition first.',
      });
  }
}

function eventOf(
  auditContext: AuditContext,
  reason: 'definition_added' | 'definition_changed' | 'definition_removed',
  details: Readonly<Record<string, unknown>>,
) {
  return {
    event: 'config.agents.changed',
    auditContext,
    target: { kind: 'config', id: 'agents' },
    outcome: 'success',
    reason,
    details,
  } as const;
}
