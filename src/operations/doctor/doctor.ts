import { lookup } from 'node:dns/promises';
import { statfs } from 'node:fs/promises';
import { request } from 'node:http';
import { request as requestTls } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { Environment } from '../../config/generated-secrets.ts';
import type { Config } from '../../config/read.ts';
import type { Workload } from '../../config/names.ts';
import { type Finding, type Patient, unknown, type World } from './finding.ts';
import { checkIdentity } from './keycloak.ts';
import { checkHosts } from './hosts.ts';
import { checkConfig, checkDataDir, checkNode, checkSecrets } from './machine.ts';
import { checkDatabase, checkKv, checkObjectStore } from './backends.ts';
import { holderOf } from '../../platform/data-dir.ts';

/**
 * `npm start -- doctor`: checks everything a workload depends on and reports what to fix. Works with and without a running
 * server, changes nothing, and prints no secret, only the number and length of secrets.
 */
export async function examine(
  env: Environment | undefined,
  workload: Workload,
  world: World,
): Promise<Finding[]> {
  const node = checkNode(world);
  const { config, findings } = checkConfig(env, workload);
  if (config === undefined)
    return [node, ...findings, unknown('everything else', 'is checked when the settings are fixed')];
  const patient: Patient & { workload: Workload } = {
    config,
    world,
    workload,
    holder: await holderIn(config),
  };
  return [
    node,
    ...findings,
    ...(await checkDataDir(patient)),
    ...checkSecrets(patient),
    ...(await checkDatabase(patient)),
    ...(await checkKv(patient)),
    await checkObjectStore(patient),
    ...(await checkIdentity(config)),
    ...(await checkHosts(patient)),
  ];
}

async function holderIn({ databaseUrl, dataDir }: Config) {
  if (databaseUrl !== null) return undefined;
  // checkDataDir() reports a folder that cannot be read.
  return await holderOf(dataDir).catch(() => undefined);
}

/** 0 when nothing failed, 1 otherwise. */
export async function runDoctor({
  workload,
  isJson,
}: {
  workload: Workload;
  isJson: boolean;
}): Promise<number> {
  const checks = await examine(undefined, workload, systemWorld);
  const isWell = checks.every(({ state }) => state !== 'failed');
  if (isJson) console.log(JSON.stringify({ ok: isWell, workload, checks }, null, 2));
  else console.log(inWords(checks));
  return isWell ? 0 : 1;
}

const words: Readonly<Record<Finding['state'], string>> = {
  ok: 'ok     ',
  advice: 'advice ',
  failed: 'FAILED ',
  unknown: '?      ',
};

function inWords(checks: readonly Finding[]): string {
  const width = Math.max(...checks.map(({ check }) => check.length));
  const lines = checks.flatMap(({ check, state, says, fix }) => [
    `${words[state]} ${check.padEnd(width)}  ${says}`,
    ...(fix === null ? [] : [`${' '.repeat(width + 10)}→ ${fix}`]),
  ]);
  const count = checks.filter(({ state }) => state === 'failed').length;
  const sum = count === 0 ? 'Nothing needs fixing.' : `${count} ${count === 1 ? 'check' : 'checks'} failed.`;
  return [...lines, '', sum].join('\n');
}

const patienceMs = 4_000;

const systemWorld: World = {
  nodeVersion: process.versions.node,
  now: () => Date.now(),
  async freeBytes(folder) {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  },
  lookUp: async (host) => void (await lookup(host)),
  get: (url) =>
    new Promise((resolve, reject) => {
      const { protocol, hostname } = new URL(url);
      const ask = protocol === 'https:' ? requestTls : request;
      const asked = ask(url, {
        signal: AbortSignal.timeout(patienceMs),
        agent: false,
        ...(hostname.endsWith('.localhost') ? { lookup: toThisMachine } : {}),
      });
      asked.on('error', reject);
      asked.on('response', (answer) => {
        answer.destroy();
        resolve({ status: answer.statusCode ?? 0 });
      });
      asked.end();
    }),
};

/** Not every resolver knows the names below localhost; they are this machine (RFC 6761). */
const toThisMachine: LookupFunction = (_, options, found) => {
  if (options.all === true) found(null, [{ address: '127.0.0.1', family: 4 }]);
  else found(null, '127.0.0.1', 4);
};
