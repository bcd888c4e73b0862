import type { RepositoryAccess } from '../../core/caller.ts';
import { type Sql, sql } from '../../platform/database/sql.ts';
import type { AgentDefinition } from './definition.ts';
import type { ClientStatus } from './mcp-client-store.ts';
import type { AgentGrant } from './session-store.ts';

/** A consent that a person once gave to a client. */
export type PersonGrant = {
  readonly issuer: string;
  readonly subject: string;
  readonly clientId: string;
  /** The id of the grant, from introspection. */
  readonly grantId: string;
};

export type DefinitionChoice = Pick<PersonGrant, 'clientId' | 'grantId'> & { readonly definitionId: string };

/** What the tables store about the agents of one consent. */
export type GrantStanding = {
  /** Someone ended the access of the consent. */
  readonly isEnded: boolean;
  readonly clientStatus: ClientStatus;
  /** The definition of the client; else the person's choice for this consent, while it is offered. */
  readonly definitionId: string | null;
};

export type AgentDefinitionStore = {
  /** By name. */
  list(): Promise<AgentDefinition[]>;
  /** Makes other changes wait until the transaction ends. */
  hold(): Promise<AgentDefinition[]>;
  find(id: string): Promise<AgentDefinition | undefined>;
  standingOf(grant: PersonGrant & Pick<AgentGrant, 'userId'>): Promise<GrantStanding>;
  /** The definitions that a person chose. */
  choicesOf(person: Pick<PersonGrant, 'issuer' | 'subject'>): Promise<DefinitionChoice[]>;
  /** `definitionId` null: removes the choice. */
  choose(grant: PersonGrant, definitionId: string | null, at: number): Promise<void>;
  /** Removes choices older than `before` whose grants have no stored session. */
  pruneChoices(before: number, limit: number): Promise<number>;
  /** Adds it, or replaces the one with this id. */
  put(definition: AgentDefinition): Promise<void>;
  remove(id: string): Promise<void>;
};

type Row = Omit<AgentDefinition, 'workspace'> &
  Pick<AgentDefinition['workspace'], 'maxEnvironments' | 'environmentTtlHours' | 'maySites'> & {
    readonly repositoryMode: RepositoryAccess['mode'];
    readonly repositories: readonly { readonly id: string; readonly name: string }[];
  };

export function agentDefinitionStore(db: Sql): AgentDefinitionStore {
  const selected = sql`
    select d.id, d.name, d.purpose, d.model, d.instructions, d.instructions_default, d.tools, d.repository_mode, d.max_environments,
      d.environment_ttl_hours, d.may_sites, d.is_offered,
      coalesce((select jsonb_agg(jsonb_build_object('id', r.id, 'name', r.full_name) order by lower(r.full_name))
        from agent_definition_repositories s join repositories r on r.id = s.repository_id
        where s.definition_id = d.id), '[]') as repositories,
      coalesce((select jsonb_agg(c.client_id order by c.client_id) from agent_definition_clients c
        where c.definition_id = d.id), '[]') as clients
      from agent_definitions d`;

  async function list(): Promise<AgentDefinition[]> {
    return (await sql<Row>`${selected} order by d.name`.all(db)).map(toDefinition);
  }
  return {
    list,
    async hold() {
      await sql`select pg_advisory_xact_lock(hashtextextended('agents:definitions', 0))`.run(db);
      return await list();
    },
    async find(id) {
      const row = await sql<Row>`${selected} where d.id = ${id}`.first(db);
      return row && toDefinition(row);
    },
    async standingOf({ userId, issuer, subject, clientId, grantId }) {
      const row = await sql<{ ended: boolean; status: ClientStatus | null; definition: string | null }>`
        select exists (
            select 1 from agent_ended_grants
             where user_id = ${userId} and client_id = ${clientId} and grant_id = ${grantId}) as ended,
          (select status from mcp_clients where client_id = ${clientId}) as status,
          coalesce(
            (select definition_id from agent_definition_clients where client_id = ${clientId}),
            (select g.definition_id from agent_grant_definitions g join agent_definitions o on o.id = g.definition_id
              where g.issuer = ${issuer} and g.subject = ${subject} and g.client_id = ${clientId}
                and g.grant_id = ${grantId} and o.is_offered)) as definition`.first(db);
      if (row === undefined) throw new Error('A select without a table has one row.');
      return { isEnded: row.ended, clientStatus: row.status ?? 'allowed', definitionId: row.definition };
    },
    async choicesOf({ issuer, subject }) {
      return await sql<DefinitionChoice>`
        select client_id, grant_id, definition_id from agent_grant_definitions
         where issuer = ${issuer} and subject = ${subject}`.all(db);
    },
    async choose({ issuer, subject, clientId, grantId }, definitionId, at) {
      if (definitionId === null) {
        await sql`
          delete from agent_grant_definitions
           where issuer = ${issuer} and subject = ${subject} and client_id = ${clientId} and grant_id = ${grantId}`.run(
          db,
        );
        return;
      }
      await sql`
        insert into agent_grant_definitions (issuer, subject, client_id, grant_id, definition_id, chosen_at)
        values (${issuer}, ${subject}, ${clientId}, ${grantId}, ${definitionId}, ${new Date(at)})
        on conflict (issuer, subject, client_id, grant_id) do update
          set definition_id = excluded.definition_id, chosen_at = excluded.chosen_at`.run(db);
    },
    async pruneChoices(before, limit) {
      return await sql`
        delete from agent_grant_definitions where (issuer, subject, client_id, grant_id) in (
          select g.issuer, g.subject, g.client_id, g.grant_id from agent_grant_definitions g
           where g.chosen_at < ${new Date(before)} and not exists (
             select 1 from agent_sessions s join users u on u.id = s.user_id
              where u.issuer = g.issuer and u.subject = g.subject
                and s.client_id = g.client_id and s.grant_id = g.grant_id)
           order by g.chosen_at limit ${limit})`.run(db);
    },
    async put(definition) {
      const { id, name, purpose, model, instructions, instructionsDefault } = definition;
      const { tools, workspace, isOffered, clients } = definition;
      const { repositories, maxEnvironments, environmentTtlHours, maySites } = workspace;
      await sql`
        insert into agent_definitions (id, name, purpose, model, instructions, instructions_default, tools, repository_mode, max_environments,
          environment_ttl_hours, may_sites, is_offered)
        values (${id}, ${name}, ${purpose}, ${model}, ${instructions}, ${instructionsDefault}, ${JSON.stringify(tools)}::jsonb, ${repositories.mode},
          ${maxEnvironments}, ${environmentTtlHours}, ${maySites}, ${isOffered})
        on conflict (id) do update set name = excluded.name, purpose = excluded.purpose, model = excluded.model,
          instructions = excluded.instructions, instructions_default = excluded.instructions_default, tools = excluded.tools, repository_mode = excluded.repository_mode,
          max_environments = excluded.max_environments, environment_ttl_hours = excluded.environment_ttl_hours,
          may_sites = excluded.may_sites, is_offered = excluded.is_offered`.run(db);
      await sql`delete from agent_definition_clients where definition_id = ${id}`.run(db);
      await sql`
        insert into agent_definition_clients (client_id, definition_id)
        select client_id, ${id} from jsonb_array_elements_text(${JSON.stringify(clients)}::jsonb) as client_id`.run(
        db,
      );
      const ids = repositories.mode === 'selected' ? repositories.repositoryIds : [];
      await sql`delete from agent_definition_repositories where definition_id = ${id}`.run(db);
      await sql`
        insert into agent_definition_repositories (definition_id, repository_id)
        select ${id}, repository_id from jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb) as repository_id`.run(
        db,
      );
    },
    async remove(id) {
      await sql`delete from agent_definitions where id = ${id}`.run(db);
    },
  };
}

function toDefinition(row: Row): AgentDefinition {
  const { repositoryMode, repositories, maxEnvironments, environmentTtlHours, maySites, ...definition } = row;
  const workspace = {
    repositories:
      repositoryMode === 'selected'
        ? ({ mode: 'selected', repositoryIds: repositories.map((one) => one.id) } as const)
        : ({ mode: 'all' } as const),
    repositoryNames: repositories.map((one) => one.name),
    maxEnvironments,
    environmentTtlHours,
    maySites,
  };
  return { ...definition, workspace };
}
