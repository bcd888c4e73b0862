import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { minute, second } from '../../../core/clock.ts';
import { AppError } from '../../../core/errors.ts';
import { mac } from '../../../platform/encryption.ts';
import { createFairQueue } from '../../../platform/fair-queue.ts';
import { createMaking, type WantedDatabase } from './making.ts';
import {
  databaseNameOf,
  environmentPrefix,
  passwordOf,
  prefixOf,
  templateNameOf,
  templatePrefix,
  verifierOf,
} from './names.ts';
import { runSeed, type SeedLimits } from '../../engine/engine.ts';
import type { DatabaseServer } from './server.ts';

/**
 * A PostgreSQL database for each `postgres` service of an Environment, owned by a separate role that can reach no other
 * database. Databases with the same seed are copies of a template, which is seeded once for each repository. An incomplete
 * database is created again after a kill. The caller decides when to create one, and which services get the address.
 */
export type Databases = {
  readonly kind: 'server';
  /**
   * Null: the database is being created; call again, immediately after `onSettled`. An existing database stays unchanged, even
   * if the seed changed. @throws AppError config_invalid when the seed cannot be used, engine_unavailable while the server is
   * unavailable; errors of `read`
   */
  ensure(wanted: WantedDatabase): Promise<DatabaseAddress | null>;
  /** Ends the sessions of the Environment and drops its databases, its roles, and templates without other copies. */
  remove(environmentId: string): Promise<void>;
  /** Removes databases of unknown Environments. Calls `known` after listing the databases. Returns the removed names. */
  sweep(known: () => Promise<ReadonlySet<string>>): Promise<readonly string[]>;
};

/** `url` contains the password, so no log or response may show it. */
export type DatabaseAddress = {
  readonly host: string;
  readonly port: number;
  readonly url: string;
  readonly password: string;
};

const defaultLimits: SeedLimits = {
  timeMs: 60_000,
  databaseBytes: 2 ** 30,
  answerBytes: 4 * 2 ** 20,
};
/** Maximum connections to one database. */
const maxConnections = 20;
const atOnce = { width: 4, perSender: 1, queue: 1_000 };

export function createDatabases(deps: {
  readonly server: DatabaseServer;
  /** Marks this installation's roles in their comments. Postern does not change other roles on the server. */
  readonly uiUrl: string;
  readonly encryptionKey: string;
  readonly limits?: Partial<SeedLimits>;
  /** Called when background work for this Environment has ended. */
  readonly onSettled: (environmentId: string) => void;
}): Databases {
  const { server } = deps;
  const limits = { ...defaultLimits, ...deps.limits };
  const key = mac(deps.encryptionKey, 'environment-databases', '');
  const mark = `Postern ${deps.uiUrl} `;
  const making = createMaking({ turns: createFairQueue(atOnce), onSettled: deps.onSettled });

  function optionsOf(name: string): string {
    const verifier = verifierOf(name, passwordOf(name, key));
    return `connection limit ${maxConnections} password '${verifier}'`;
  }

  /** `template`: the template of its database. */
  async function putRole(client: pg.Client, name: string, template: string | null): Promise<void> {
    const comment = `comment on role ${name} is ${pg.escapeLiteral(`${mark}${template ?? '-'}`)}`;
    await shut(client, name);
    await client.query(
      (await hasRole(client, name))
        ? `alter role ${name} ${optionsOf(name)}; ${comment}`
        : `create role ${name} nologin nosuperuser nocreatedb nocreaterole ${optionsOf(name)}; grant ${name} to current_user; ${comment}`,
    );
  }

  /** Only its owner can connect, even while the database is being created. */
  async function createDatabase(client: pg.Client, name: string, template: string): Promise<void> {
    await dropDatabase(client, name);
    await client.query(`create database ${name} template ${template} allow_connections false`);
    await client.query(`revoke all on database ${name} from public`);
    await client.query(`alter database ${name} allow_connections true`);
  }

  /** Creates a database. Its role can log in only after it is complete. */
  async function make(
    { environmentId, service, repositoryId, seed }: WantedDatabase,
    signal: AbortSignal,
    onBegin: () => void,
  ) {
    signal.throwIfAborted();
    const name = databaseNameOf(environmentId, service);
    const text = (await seed?.read()) ?? null;
    const template = text === null ? null : templateNameOf(repositoryId, text);
    signal.throwIfAborted();
    onBegin();
    await server.connected(async (client) => {
      await lock(client, name, minute, signal);
      if (await isComplete(client, name)) return;
      if (template !== null) await lock(client, template, minute, signal);
      await putRole(client, name, template);
      if (seed !== null && text !== null && template !== null)
        await makeTemplate(client, template, { path: seed.path, text }, signal);
      await createDatabase(client, name, template ?? 'template0');
      await client.query(`alter database ${name} owner to ${name}`);
      if (template !== null)
        await server.connected(
          (inside) => inside.query(`reassign owned by ${template} to ${name}; drop owned by ${template}`),
          { database: name },
        );
      await client.query(`alter role ${name} login`);
    });
  }

  /** Creates a template. It becomes a template owned by Postern only when it is complete. */
  async function makeTemplate(
    client: pg.Client,
    name: string,
    seed: { readonly path: string; readonly text: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { rows } = await client.query(
      `select 1 from pg_database
        where datname = $1 and datistemplate and pg_get_userbyid(datdba) = current_user`,
      [name],
    );
    if (rows.length > 0) return;
    await putRole(client, name, null);
    await createDatabase(client, name, 'template0');
    await client.query(`alter database ${name} owner to ${name}`);
    await client.query(`alter role ${name} login`);
    try {
      const login = { user: name, password: passwordOf(name, key), database: name };
      const databaseBytes = async () => {
        const found = await client.query<{ bytes: string }>('select pg_database_size($1) as bytes', [name]);
        return Number(found.rows[0]?.bytes);
      };
      await server.connected((inside) => runSeed(inside, seed, { limits, databaseBytes, signal }), login);
    } catch (error) {
      await removeTemplate(client, name);
      throw error;
    }
    await shut(client, name);
    await client.query(`alter database ${name} owner to current_user`);
    await client.query(`alter database ${name} allow_connections false`);
    await endSessions(client, name);
    await client.query(`alter database ${name} is_template true`);
  }

  /** Also drops what the role created in other databases, such as large objects in a database that accepts every role. */
  async function dropRole(client: pg.Client, name: string): Promise<void> {
    if (!(await hasRole(client, name))) return;
    await shut(client, name);
    const { rows } = await client.query<{ database: string }>(
      `select distinct d.datname as database
         from pg_shdepend s join pg_database d on d.oid = s.dbid
        where s.refclassid = 'pg_authid'::regclass and s.refobjid = $1::regrole and d.datallowconn`,
      [name],
    );
    for (const { database } of rows)
      await server.connected((inside) => inside.query(`drop owned by ${name}`), { database });
    await client.query(`drop owned by ${name}`);
    await client.query(`drop role ${name}`);
  }

  async function removeDatabase(client: pg.Client, name: string): Promise<void> {
    await lock(client, name, 5 * second);
    await shut(client, name);
    await dropDatabase(client, name);
    await dropRole(client, name);
    await unlock(client, name);
  }

  async function removeTemplate(client: pg.Client, name: string): Promise<void> {
    await shut(client, name);
    await dropDatabase(client, name);
    await dropRole(client, name);
  }

  /** Names of roles and the template of each. */
  async function rolesOf(client: pg.Client, prefix: string, ofThis = mark) {
    const { rows } = await client.query<{ name: string; comment: string | null }>(
      `select rolname as name, shobj_description(oid, 'pg_authid') as comment
         from pg_roles where starts_with(rolname, $1) order by rolname`,
      [prefix],
    );
    return rows.flatMap(({ name, comment }) =>
      (comment ?? '').startsWith(ofThis) ? [{ name, template: comment?.slice(mark.length) }] : [],
    );
  }

  /** Skips locked templates, which are in use. A failed removal does not stop the others; its error is thrown at the end. */
  async function removeUnusedTemplates(client: pg.Client): Promise<string[]> {
    const removed: string[] = [];
    const errors: unknown[] = [];
    for (const { name } of await rolesOf(client, templatePrefix)) {
      if (!(await lockIfFree(client, name))) continue;
      const users = await rolesOf(client, environmentPrefix);
      if (!users.some(({ template }) => template === name))
        await removeTemplate(client, name).then(
          () => removed.push(name),
          (error: unknown) => errors.push(error),
        );
      await unlock(client, name);
    }
    if (errors.length > 0) throw errors[0];
    return removed;
  }

  return {
    kind: 'server',

    async ensure(wanted) {
      const name = databaseNameOf(wanted.environmentId, wanted.service);
      if (making.isUnderWay(name, wanted.seed)) return null;
      const state = await server.connected(async (client) => {
        if (!(await lockIfFree(client, name))) return 'busy';
        const isMade = await isComplete(client, name);
        // The role can change its own password, and a new ENCRYPTION_KEY gives a different one.
        if (isMade) await client.query(`alter role ${name} ${optionsOf(name)}`);
        await unlock(client, name);
        return isMade ? 'made' : 'missing';
      });
      if (state === 'missing') making.begin(name, wanted, (signal, onBegin) => make(wanted, signal, onBegin));
      if (state !== 'made') return null;
      const { host, port } = server;
      const password = passwordOf(name, key);
      return { host, port, password, url: server.urlOf({ user: name, password, database: name }) };
    },

    async remove(environmentId) {
      const prefix = prefixOf(environmentId);
      await making.end(prefix);
      await server.connected(async (client) => {
        // Includes databases from a time when SERVICE_UI_URL was different.
        const roles = await rolesOf(client, prefix, '');
        for (const { name } of roles) await removeDatabase(client, name);
        if (roles.length > 0) await removeUnusedTemplates(client);
      });
    },

    async sweep(known) {
      return await server.connected(async (client) => {
        const found = await rolesOf(client, environmentPrefix);
        const kept = [...(await known())].map(prefixOf);
        const gone = found.filter(({ name }) => !kept.some((prefix) => name.startsWith(prefix)));
        const errors: unknown[] = [];
        for (const { name } of gone)
          await removeDatabase(client, name).catch((error: unknown) => errors.push(error));
        const templates = await removeUnusedTemplates(client).catch((error: unknown) => {
          errors.push(error);
          return [];
        });
        // The error comes last: a database that always fails must not block the removal of the rest.
        if (errors.length > 0) throw errors[0];
        return [...gone.map(({ name }) => name), ...templates];
      });
    },
  };
}

async function hasRole(client: pg.Client, name: string): Promise<boolean> {
  return (await client.query('select 1 from pg_roles where rolname = $1', [name])).rows.length > 0;
}

async function isComplete(client: pg.Client, name: string): Promise<boolean> {
  const { rows } = await client.query(
    `select 1 from pg_roles r join pg_database d on d.datdba = r.oid
      where r.rolname = $1 and d.datname = $1 and r.rolcanlogin`,
    [name],
  );
  return rows.length > 0;
}

/** Drops a database. Its owner may have made it a template, which PostgreSQL would not drop. */
async function dropDatabase(client: pg.Client, name: string): Promise<void> {
  const { rows } = await client.query('select 1 from pg_database where datname = $1', [name]);
  if (rows.length === 0) return;
  await withoutSessions(client, name, async () => {
    await client.query(`alter database ${name} is_template false`);
    await client.query(`drop database ${name} with (force)`);
  });
}

/** Ends all sessions of the role in every database and prevents new ones. */
async function shut(client: pg.Client, name: string): Promise<void> {
  if (!(await hasRole(client, name))) return;
  await withoutSessions(client, name, () => client.query(`alter role ${name} nologin`));
  await endSessions(client, name);
}

/** A session can lock its role and its database without limit, and a new one can begin after each end. */
async function withoutSessions(
  client: pg.Client,
  name: string,
  change: () => Promise<unknown>,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    await endSessions(client, name);
    try {
      await change();
      return;
    } catch (error) {
      const code = error instanceof pg.DatabaseError ? error.code : undefined;
      if (attempt === maxAttempts || !isConcurrent.test(code ?? '')) throw error;
    }
  }
}

const maxAttempts = 3;
/** SQLSTATE lock_not_available, object_in_use, and the code for a row that another session changed (PostgreSQL appendix A). */
const isConcurrent = /^(?:55P03|55006|XX000)$/;

/** Ends sessions of the role, and sessions of other roles in its database. */
async function endSessions(client: pg.Client, name: string): Promise<void> {
  await client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where (datname = $1 or usename = $1) and pg_has_role(usesysid, 'usage')`,
    [name],
  );
}

/**
 * Takes a lock until unlock() or the end of the connection, even by a kill. It polls, because a waiting statement cannot be
 * cancelled over its own connection.
 */
async function lock(client: pg.Client, name: string, timeMs: number, signal?: AbortSignal): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += betweenLocksMs) {
    signal?.throwIfAborted();
    if (await lockIfFree(client, name)) return;
    if (waitedMs >= timeMs)
      throw new AppError('engine_unavailable', {
        message: 'Another process works on this database.',
        hint: 'Wait. Postern tries again.',
      });
    await wait(betweenLocksMs, undefined, { signal });
  }
}

const betweenLocksMs = 100;

async function lockIfFree(client: pg.Client, name: string): Promise<boolean> {
  const { rows } = await client.query<{ taken: boolean }>(
    'select pg_try_advisory_lock(hashtextextended($1, 0)) as taken',
    [name],
  );
  return rows[0]?.taken === true;
}

async function unlock(client: pg.Client, name: string): Promise<void> {
  await client.query('select pg_advisory_unlock(hashtextextended($1, 0))', [name]);
}
