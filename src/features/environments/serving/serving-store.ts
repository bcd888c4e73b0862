import { sql } from 'kysely';
import type { Sql } from '../../../platform/database/database.ts';
import type { Access } from '../../configuration-file/configuration-file.ts';
import type { EnvironmentService, EnvironmentStatus } from '../environment/environment.ts';

/** A service as the gateway sees it. */
export type ServedService = Pick<
  EnvironmentService,
  'name' | 'kind' | 'status' | 'reason' | 'isExposed' | 'routes' | 'spa' | 'artifactId' | 'address'
>;

/** An Environment at one of its labels, and its services. Times in milliseconds. */
export type LabelledEnvironment = {
  readonly id: string;
  readonly label: string;
  /** False: an earlier label, from before a change of access, or the Environment was removed. */
  readonly isLastLabel: boolean;
  /** False: the label serves nothing any more. */
  readonly isCurrentLabel: boolean;
  readonly access: Access;
  readonly status: EnvironmentStatus;
  /** What happens now, in words. */
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
  /** Its compressed forms are complete. */
  readonly isEncoded: boolean;
};

/**
 * What the gateway reads of Environments. It names only tables and columns that are also views of the schema `gateway`, so a
 * standalone gateway runs the same queries.
 */
export type ServingStore = {
  findLabel(label: string): Promise<LabelledEnvironment | undefined>;
  staticArtifact(id: string): Promise<StaticArtifact | undefined>;
};

type EnvironmentRow = {
  id: string;
  is_last: boolean | null;
  is_retired: boolean;
  access: Access | null;
  status: EnvironmentStatus | null;
  status_message: string | null;
  epoch: number;
  revision: string | null;
  expires_at: Date | null;
  services: ServedService[];
};

export function servingStore(db: Sql): ServingStore {
  return {
    async findLabel(label) {
      // One query whatever is there, so that its time reveals nothing about a label.
      const { rows } = await sql<EnvironmentRow>`
        select l.environment_id as id, e.label = l.label as is_last, l.retired_at is not null as is_retired, e.access, e.status,
               e.status_message, e.revision::text, e.expires_at,
               (select count(*)::int from environment_labels every where every.environment_id = l.environment_id) as epoch,
               (select coalesce(jsonb_agg(jsonb_build_object('name', s.name, 'kind', s.kind, 'status', s.status,
                         'reason', s.reason, 'isExposed', s.is_exposed, 'routes', s.routes, 'spa', s.spa,
                         'artifactId', s.artifact_id, 'address', s.address) order by s.position), '[]')
                  from environment_services s where s.environment_id = l.environment_id) as services
          from environment_labels l left join environments e on e.id = l.environment_id
         where l.label = ${label}`.execute(db);
      return rows[0] && toEnvironment(label, rows[0]);
    },
    async staticArtifact(id) {
      const { rows } = await sql<{ manifest: readonly StoredFile[]; is_encoded: boolean }>`
        select manifest, encoded_at is not null as is_encoded from artifacts
         where id = ${id} and kind = 'static' and manifest is not null`.execute(db);
      const [row] = rows;
      if (row === undefined) return undefined;
      const manifest = new Map(row.manifest.map(([path, digest, size]) => [path, { digest, size }]));
      return { manifest, isEncoded: row.is_encoded };
    },
  };
}

/** A label whose Environment has no row any more belongs to one that was removed. */
function toEnvironment(label: string, row: EnvironmentRow): LabelledEnvironment {
  return {
    id: row.id,
    label,
    isLastLabel: row.is_last === true,
    isCurrentLabel: row.is_last === true && !row.is_retired,
    access: row.access ?? 'owner',
    status: row.status ?? 'torn_down',
    statusMessage: row.status_message,
    epoch: row.epoch,
    revision: Number(row.revision ?? 0),
    expiresAt: row.expires_at?.getTime() ?? 0,
    // One that was switched off has no host, and the routes of its siblings do not lead to it.
    services: new Map(
      row.services.filter(({ status }) => status !== 'inactive').map((service) => [service.name, service]),
    ),
  };
}
