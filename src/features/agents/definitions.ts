import type { AuditContext } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import { newId, type Random } from '../../core/ids.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { AgentDefinition } from './definition.ts';
import type { AgentDefinitionStore } from './definition-store.ts';

export const maxDefinitions = 100;

type DefinitionInput = Omit<AgentDefinition, 'id'>;
type DefinitionChange = { readonly [Field in keyof DefinitionInput]?: DefinitionInput[Field] | undefined };

/** @throws AppError name_conflict, state_conflict when a client has another definition */
export type AgentDefinitions = {
  list(): Promise<AgentDefinition[]>;
  ofClient(clientId: string): Promise<AgentDefinition | undefined>;
  /** @throws AppError quota_exceeded */
  add(auditContext: AuditContext, input: DefinitionInput): Promise<AgentDefinition>;
  /** @throws AppError not_found; so does remove */
  change(auditContext: AuditContext, id: string, change: DefinitionChange): Promise<AgentDefinition>;
  remove(auditContext: AuditContext, id: string): Promise<void>;
};

export function createAgentDefinitions(deps: {
  readonly read: { readonly agentDefinitions: Pick<AgentDefinitionStore, 'list' | 'ofClient'> };
  readonly tx: Tx<{ readonly agentDefinitions: AgentDefinitionStore; readonly audit: AuditWriter }>;
  readonly random: Random;
}): AgentDefinitions {
  const { read, tx, random } = deps;
  return {
    list: read.agentDefinitions.list,
    ofClient: read.agentDefinitions.ofClient,
    add: (auditContext, input) =>
      tx(async ({ agentDefinitions, audit }) => {
        const others = await agentDefinitions.hold();
        if (others.length >= maxDefinitions)
          throw new AppError('quota_exceeded', {
            message: `There are ${maxDefinitions} agent definitions, which is the maximum.`,
            hint: 'Delete a definition that is no longer needed.',
          });
        const definition = { id: newId(random, 'agd'), ...normal(input) };
        requireUnused(definition, others);
        await agentDefinitions.put(definition);
        await audit.append(eventOf(auditContext, 'definition_added', { after: definition }));
        return definition;
      }),
    change: (auditContext, id, change) =>
      tx(async ({ agentDefinitions, audit }) => {
        const all = await agentDefinitions.hold();
        const before = definitionIn(all, id);
        const sent = Object.entries(change).filter(([, value]) => value !== undefined);
        const after = normal({ ...before, ...Object.fromEntries(sent) });
        requireUnused(after, all);
        await agentDefinitions.put(after);
        await audit.append(eventOf(auditContext, 'definition_changed', { before, after }));
        return after;
      }),
    remove: (auditContext, id) =>
      tx(async ({ agentDefinitions, audit }) => {
        const before = definitionIn(await agentDefinitions.hold(), id);
        await agentDefinitions.remove(id);
        await audit.append(eventOf(auditContext, 'definition_removed', { before }));
      }),
  };
}

function normal<T extends DefinitionInput>(definition: T): T {
  return { ...definition, clients: [...new Set(definition.clients)].sort() };
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
