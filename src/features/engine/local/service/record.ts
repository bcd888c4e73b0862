import { join } from 'node:path';
import { readJson, writeJson } from '../json-files.ts';
import { isDatabase, type Wanted } from './start.ts';

/** State of a service that survives a restart of the engine, without secrets. */
export type ServiceRecord = {
  readonly revision: string;
  readonly health: string | null;
  readonly isDatabase: boolean;
  readonly memoryBytes: number;
  /** The files of the artifact are complete. */
  readonly isUnpacked: boolean;
  /** Null: no port was chosen yet. */
  readonly port: number | null;
  /** The process that holds its network. Null: the network of this machine. */
  readonly holder: number | null;
  /** Starts of this revision. */
  readonly starts: number;
  /** Consecutive failures. */
  readonly failures: number;
  /** Whether `failures` includes the end of the last start. */
  readonly isEndCounted: boolean;
  /** Id of the first line in the log of this revision. */
  readonly firstLine: number;
};

export function newRecord(desired: Wanted, kept: Pick<ServiceRecord, 'port' | 'firstLine'>): ServiceRecord {
  const { revision, memoryBytes } = desired;
  return {
    ...kept,
    revision,
    health: isDatabase(desired) ? null : desired.health,
    isDatabase: isDatabase(desired),
    memoryBytes,
    isUnpacked: false,
    holder: null,
    starts: 0,
    failures: 0,
    isEndCounted: false,
  };
}

const name = 'service.json';

export async function readRecord(folder: string): Promise<ServiceRecord | undefined> {
  return await readJson<ServiceRecord>(join(folder, name));
}

export function writeRecord(folder: string, record: ServiceRecord): void {
  writeJson(join(folder, name), record);
}
