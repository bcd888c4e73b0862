import { type Sql, sql } from '../../../platform/database/sql.ts';
import type { Access } from '../../configuration-file/configuration-file.ts';
import type { EnvironmentService, EnvironmentStatus } from '../environment/environment.ts';

/** Fields of a service that the gateway reads. */
export type ServedService = Pick<
  EnvironmentService,
  'name' | 'kind' | 'status' | 'reason' | 'isExposed' | 'routes' | 'spa' | 'artifactId' | 'address'
>;

/** An Environment at one of its labels, with its services. Times in milliseconds. */
export type LabelledEnvironment = {
  readonly id: string;
  readonly label: string;
  /** False: a label from before a change of access, or the Environment was removed. */
  readonly isLastLabel: boolean;
  /** False: the label no longer serves anything. */
  readonly isCurrentLabel: boolean;
  readonly access: Access;
  readonly status: EnvironmentStatus;
  /** What happens now, for people. */
  readonly statusMessage: string | null;
  /** Counts the changes of its access. A grant for an earlier epoch is not valid. */
  readonly epoch: number;
  readonly revision: number;
  readonly expiresAt: number;
  readonly services: ReadonlyMap<string, ServedService>;
};

type StoredFile = readonly [path: string, digest: string, size: number];

export type StaticArtifact = {
  readonly manifest: ReadonlyMap<string, { readonly digest: string; readonly size: number }>;
  /** Whether its compressed forms are complete. */
  readonly isEncoded: boolean;
};

/**
 * Queries of the gateway for Environments. They use only tables and columns that the schema `gateway` also has as views, so a
 * standalone gateway runs the same queries.
 */
export type ServingStore = {
  findLabel(label: string): Promise<LabelledEnvironment | undefined>;
  staticArtifact(id: string): Promise<StaticArtifact | undefined>;
};

type EnvironmentRow = {
  id: string;
  isLast: boolean | null;
  isRetired: boolean;
  access: Access | null;
  status: EnvironmentStatus | null;
  statusMessage: string | null;
  epoch: number;
  revision: number | null;
  expiresAt: number | null;
  services: ServedService[];
};

export function servingStore(db: Sql): ServingStore {
  return {
    async findLabel(label) {
      // Always one query, so that its time reveals nothing about a label.
      const row = await sql<EnvironmentRow>`
        select l.environment_id as id, e.label = l.label as is_last, l.retired_at is not null as is_retired, e.access, e.status,
               e.status_message, e.revision, e.expires_at,
               (select count(*)::int from environment_labels every where every.environment_id = l.environment_id) as epoch,
               (select coalesce(jsonb_agg(jsonb_build_object('name', s.name, 'kind', s.kind, 'status', s.status,
                         'reason', s.reason, 'isExposed', s.is_exposed, 'routes', s.routes, 'spa', s.spa,
                         'artifactId', s.artifact_id, 'address', s.address) order by s.position), '[]')
                  from environment_services s where s.environment_id = l.environment_id) as services
          from environment_labels l left join environments e on e.id = l.environment_id
         where l.label = ${label}`.first(db);
      return row && toEnvironment(label, row);
    },
    async staticArtifact(id) {
      const row = await sql<{ manifest: readonly StoredFile[]; isEncoded: boolean }>`
        select manifest, encoded_at is not null as is_encoded from artifacts
         where id = ${id} and kind = 'static' and manifest is not null`.first(db);
      if (row === undefined) return undefined;
      const manifest = new Map(row.manifest.map(([path, digest, size]) => [path, { digest, size }]));
      return { manifest, isEncoded: row.isEncoded };
    },
  };
}

/** A label without a row belongs to a removed Environment. */
function toEnvironment(label: string, row: EnvironmentRow): LabelledEnvironment {
  return {
    id: row.id,
    label,
    isLastLabel: row.isLast === true,
    isCurrentLabel: row.isLast === true && !row.isRetired,
    access: row.access ?? 'owner',
    status: row.status ?? 'torn_down',
    statusMessage: row.statusMessage,
    epoch: row.epoch,
    revision: row.revision ?? 0,
    expiresAt: row.expiresAt ?? 0,
    // A service that was switched off has no host, and no route of another service leads to it.
    services: new Map(
      row.services.filter(({ status }) => status !== 'inactive').map((service) => [service.name, service]),
    ),
  };
}
