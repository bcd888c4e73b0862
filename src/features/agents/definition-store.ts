import { sql } from 'kysely';
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

export function agentDefinitionStore(db: Sql): AgentDefinitionStore {
  const selected = sql`
    select d.id, d.name, d.purpose, d.instructions, d.tools,
      coalesce((select jsonb_agg(c.client_id order by c.client_id) from agent_definition_clients c
        where c.definition_id = d.id), '[]') as clients
      from agent_definitions d`;

  async function list(): Promise<AgentDefinition[]> {
    return (await sql<AgentDefinition>`${selected} order by d.name`.execute(db)).rows;
  }
  return {
    list,
    async hold() {
      await sql`select pg_advisory_xact_lock(hashtextextended('agents:definitions', 0))`.execute(db);
      return await list();
    },
    async ofClient(clientId) {
      const { rows } = await sql<AgentDefinition>`
        ${selected} join agent_definition_clients of_client on of_client.definition_id = d.id
         where of_client.client_id = ${clientId}`.execute(db);
      return rows[0];
    },
    async put({ id, name, purpose, instructions, tools, clients }) {
      await sql`
        insert into agent_definitions (id, name, purpose, instructions, tools)
        values (${id}, ${name}, ${purpose}, ${instructions}, ${JSON.stringify(tools)}::jsonb)
        on conflict (id) do update set name = excluded.name, purpose = excluded.purpose,
          instructions = excluded.instructions, tools = excluded.tools`.execute(db);
      await sql`delete from agent_definition_clients where definition_id = ${id}`.execute(db);
      await sql`
        insert into agent_definition_clients (client_id, definition_id)
        select client_id, ${id} from jsonb_array_elements_text(${JSON.stringify(clients)}::jsonb) as client_id`.execute(
        db,
      );
    },
    async remove(id) {
      await sql`delete from agent_definitions where id = ${id}`.execute(db);
    },
  };
}
