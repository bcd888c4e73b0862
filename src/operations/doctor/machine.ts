import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ConfigError, type ConfigMistake } from '../../config/config-error.ts';
import { type Environment, existingSecrets } from '../../config/generated-secrets.ts';
import { type Config, readConfig } from '../../config/read.ts';
import type { Workload } from '../../config/names.ts';
import { advice, failed, type Finding, ok, type Patient, type World } from './finding.ts';
import { fileTrouble } from '../../config/file-trouble.ts';

/** Checks that need this machine only: Node, settings, the data folder, secrets. */
const oldestNode = 24;

export function checkNode({ nodeVersion }: World): Finding {
  if (Number(nodeVersion.split('.')[0]) >= oldestNode) return ok('node', `Node ${nodeVersion}`);
  return failed(
    'node',
    `Node ${nodeVersion} is too old`,
    `Use Node ${oldestNode} or newer; npm start installs its own.`,
  );
}

/** Reports every mistake in the settings and in generated secrets at once. Creates nothing. */
export function checkConfig(
  env: Environment | undefined,
  workload: Workload,
): { config: Config | undefined; findings: Finding[] } {
  const mistakes: ConfigMistake[] = [];
  const noting = <T>(work: () => T): T | undefined => {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      mistakes.push(...error.mistakes);
      return undefined;
    }
  };
  const config = noting(() =>
    readConfig(env, workload, (name, dataDir) => noting(() => existingSecrets(name, dataDir)) ?? []),
  );
  const distinct = new Map(mistakes.map((mistake) => [JSON.stringify(mistake), mistake]));
  const findings = [...distinct.values()].map(({ setting, problem, fix }) =>
    failed('configuration', `${setting} ${problem}`, fix),
  );
  if (findings.length > 0) return { config: undefined, findings };
  return { config, findings: [ok('configuration', `every setting of ${workload} is valid`)] };
}

const [minBytes, goodBytes] = [256 * 1024 ** 2, 1024 ** 3];

export async function checkDataDir({ config, world, holder }: Patient): Promise<Finding[]> {
  const { dataDir, databaseUrl } = config;
  const found = await stat(dataDir).catch((error: NodeJS.ErrnoException) => error);
  if (found instanceof Error && found.code === 'ENOENT') return [await checkParent(dataDir)];
  const findings: Finding[] = [];
  try {
    if (found instanceof Error) throw found;
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const trouble = fileTrouble('DATA_DIR', error);
    if (trouble === undefined) throw error;
    return [failed('data.folder', `DATA_DIR ${trouble.problem}`, trouble.fix)];
  }
  if (!found.isDirectory())
    return [
      failed('data.folder', `DATA_DIR ${dataDir} is a file, not a folder`, 'Set DATA_DIR to a folder.'),
    ];
  findings.push(checkOwner(found, dataDir, databaseUrl === null));
  const free = await world.freeBytes(dataDir);
  const space = `${Math.floor(free / 1024 ** 2)} MiB free in ${dataDir}`;
  if (free < minBytes)
    findings.push(failed('data.space', space, 'Free disk space for uploads and the database.'));
  else if (free < goodBytes)
    findings.push(advice('data.space', space, 'Free disk space before it runs out.'));
  else findings.push(ok('data.space', space));
  if (databaseUrl === null)
    findings.push(
      ok(
        'data.lock',
        holder === undefined ? 'no process uses the folder' : `in use by process ${holder.pid}`,
      ),
    );
  return findings;
}

async function checkParent(dataDir: string): Promise<Finding> {
  // The nearest existing parent folder must be writable.
  for (let folder = dirname(dataDir); ; folder = dirname(folder)) {
    try {
      await access(folder, constants.W_OK | constants.X_OK);
      return ok('data.folder', `${dataDir} does not exist yet; the first start creates it`);
    } catch (error) {
      const trouble = fileTrouble('DATA_DIR', error);
      if (trouble === undefined) throw error;
      if ((error as NodeJS.ErrnoException).code === 'ENOENT' && folder !== dirname(folder)) continue;
      return failed('data.folder', `DATA_DIR cannot be created: ${trouble.problem}`, trouble.fix);
    }
  }
}

function checkOwner(
  { uid, mode }: { uid: number; mode: number },
  dataDir: string,
  isEmbedded: boolean,
): Finding {
  const me = process.getuid?.();
  // Other systems have no owner and mode. Without the embedded database the folder holds only what can be fetched again.
  if (me === undefined || !isEmbedded) return ok('data.folder', `${dataDir} is writable`);
  if (uid !== me)
    return failed(
      'data.folder',
      `${dataDir} belongs to another user (${uid}), who can replace its contents`,
      `Stop the server and run: chown -R ${me} ${dataDir}`,
    );
  if ((mode & 0o022) !== 0)
    return failed('data.folder', `other users can write to ${dataDir}`, `Run: chmod go-w ${dataDir}`);
  if ((mode & 0o055) !== 0)
    return advice('data.folder', `other users can read ${dataDir}`, `Run: chmod go= ${dataDir}`);
  return ok('data.folder', `only this user can read and write ${dataDir}`);
}

/** If one of several processes signs with a new value before the others know it, everyone signed in gets 503. */
const steps =
  'the steps of docs/how-to/rotate-secrets.md (with several processes: three steps, each with a restart)';

/** Minimum number of different characters: the output of openssl rand has thirty. */
const minVariety = 12;

export function checkSecrets({ config, workload }: { config: Config; workload: Workload }): Finding[] {
  const lists = {
    SESSION_SECRET: config.sessionSecrets,
    ENCRYPTION_KEY: config.encryptionKeys,
    GRANT_SECRET: config.grantSecrets,
  };
  const wanted = Object.entries(lists).filter(([name]) => workload !== 'gateway' || name === 'GRANT_SECRET');
  return wanted.map(([name, values]) => {
    const check = `secrets.${name.toLowerCase()}`;
    if (values.length === 0) return ok(check, 'does not exist yet; the first start generates it');
    const others = Object.entries(lists).filter(([other]) => other !== name);
    const twin = others.find(([, list]) => list.some((value) => values.includes(value)))?.[0];
    if (twin !== undefined)
      return failed(
        check,
        `${name} and ${twin} have a value in common: a leak of one reveals both`,
        `Replace the common value in ${name} by ${steps}.`,
      );
    if (values.some((value) => new Set(value).size < minVariety))
      return failed(
        check,
        `${name} has a value that can be guessed: it has few different characters`,
        `Replace it with the output of openssl rand -base64 32 by ${steps}.`,
      );
    const kept = existingSecrets(name, config.dataDir);
    if (kept.length > 0 && !kept.some((value) => values.includes(value)))
      return advice(
        check,
        `${name} is set, and differs from the value in DATA_DIR/secrets; data that the latter protects cannot be read`,
        `If this data was used without ${name}, add the value of the file to the end of ${name}. Otherwise remove the file.`,
      );
    const count =
      values.length === 1 ? 'one value' : `${values.length} values, the first is used for new data`;
    return ok(check, `${count}; at least ${Math.min(...values.map(({ length }) => length))} characters`);
  });
}
