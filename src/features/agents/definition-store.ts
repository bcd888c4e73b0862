import { sql } from 'kysely';
import type { RepositoryAccess } from '../../core/caller.ts';
import type { Sql } from '../../platform/database/database.ts';
import type { AgentDefinition } from './definition.ts';

export type AgentDefinitionStore = {
  /** By name. */
  list(): Promise<AgentDefinition[]>;
  /** The same; other changes wait until the transaction ends. */
  hold(): Promise<AgentDefinition[]>;
  ofClient(clientId: string): Promise<AgentDefinition | undefined>;
  /** Adds it, or replaces the one with this id. */
  put(definition: AgentDefinition): Promise<void>;
  remove(id: string): Promise<void>;
};

type Row = Omit<AgentDefinition, 'workspace' | 'instructionsDefault'> & {
  instructions_default: string | null;
  repository_mode: RepositoryAccess['mode'];
  max_environments: number | null;
  environment_ttl_hours: number | null;
  may_sites: AgentDefinition['workspace']['maySites'];
  repositories: { id: string; name: string }[];
};

export function agentDefinitionStore(db: Sql): AgentDefinitionStore {
  const selected = sql`
    select d.id, d.name, d.purpose, d.model, d.instructions, d.instructions_default, d.tools, d.repository_mode, d.max_environments,
      d.environment_ttl_hours, d.may_sites,
      coalesce((select jsonb_agg(jsonb_build_object('id', r.id, 'name', r.full_name) order by lower(r.full_name))
        from agent_definition_repositories s join repositories r on r.id = s.repository_id
        where s.definition_id = d.id), '[]') as repositories,
      coalesce((select jsonb_agg(c.client_id order by c.client_id) from agent_definition_clients c
        where c.definition_id = d.id), '[]') as clients
      from agent_definitions d`;

  async function list(): Promise<AgentDefinition[]> {
    return (await sql<Row>`${selected} order by d.name`.execute(db)).rows.map(toDefinition);
  }
  return {
    list,
    async hold() {
      await sql`select pg_advisory_xact_lock(hashtextextended('agents:definitions', 0))`.execute(db);
      return await list();
    },
    async ofClient(clientId) {
      const { rows } = await sql<Row>`
        ${selected} join agent_definition_clients of_client on of_client.definition_id = d.id
         where of_client.client_id = ${clientId}`.execute(db);
      return rows[0] && toDefinition(rows[0]);
    },
    async put({ id, name, purpose, model, instructions, instructionsDefault, tools, workspace, clients }) {
      const { repositories, maxEnvironments, environmentTtlHours, maySites } = workspace;
      await sql`
        insert into agent_definitions (id, name, purpose, model, instructions, instructions_default, tools, repository_mode, max_environments,
          environment_ttl_hours, may_sites)
        values (${id}, ${name}, ${purpose}, ${model}, ${instructions}, ${instructionsDefault}, ${JSON.stringify(tools)}::jsonb, ${repositories.mode},
          ${maxEnvironments}, ${environmentTtlHours}, ${maySites})
        on conflict (id) do update set name = excluded.name, purpose = excluded.purpose, model = excluded.model,
          instructions = excluded.instructions, instructions_default = excluded.instructions_default, tools = excluded.tools, repository_mode = excluded.repository_mode,
          max_environments = excluded.max_environments, environment_ttl_hours = excluded.environment_ttl_hours,
          may_sites = excluded.may_sites`.execute(db);
      await sql`delete from agent_definition_clients where definition_id = ${id}`.execute(db);
      await sql`
        insert into agent_definition_clients (client_id, definition_id)
        select client_id, ${id} from jsonb_array_elements_text(${JSON.stringify(clients)}::jsonb) as client_id`.execute(
        db,
      );
      const ids = repositories.mode === 'selected' ? repositories.repositoryIds : [];
      await sql`delete from agent_definition_repositories where definition_id = ${id}`.execute(db);
      await sql`
        insert into agent_definition_repositories (definition_id, repository_id)
        select ${id}, repository_id from jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb) as repository_id`.execute(
        db,
      );
    },
    async remove(id) {
      await sql`delete from agent_definitions where id = ${id}`.execute(db);
    },
  };
}

function toDefinition(row: Row): AgentDefinition {
  const { id, name, purpose, model, instructions, instructions_default: instructionsDefault } = row;
  const { tools, clients, repositories } = row;
  const isSelected = row.repository_mode === 'selected';
  const workspace = {
    repositories: isSelected
      ? ({ mode: 'selected', repositoryIds: repositories.map((one) => one.id) } as const)
      : ({ mode: 'all' } as const),
    repositoryNames: repositories.map((one) => one.name),
    maxEnvironments: row.max_environments,
    environmentTtlHours: row.environment_ttl_hours,
    maySites: row.may_sites,
  };
  return { id, name, purpose, model, instructions, instructionsDefault, tools, workspace, clients };
}
