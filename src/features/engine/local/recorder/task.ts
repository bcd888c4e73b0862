import type { Command, Mark } from '../run-command.ts';
import type { Sandbox } from '../sandbox.ts';

/** What a recorder runs and records. */
export type Task = {
  /** Folder of the service, in which the recorder writes the files named below. */
  readonly folder: string;
  readonly command: Omit<Command, 'output'>;
  /** Null: without isolation. */
  readonly sandbox: Sandbox | null;
  /** Values to redact from the log. */
  readonly redacted: readonly string[];
  readonly logBytes: number;
  /** Time from SIGTERM to SIGKILL, in ms. */
  readonly graceMs: number;
};

/** Mark of the processes of the service in this folder. */
export function serviceMark(folder: string): Mark {
  return ['POSTERN_SERVICE', folder];
}

/** Mark of the recorder, which ends those processes. */
export function recorderMark(folder: string): Mark {
  return ['POSTERN_RECORDER', folder];
}

/** Names of files in the folder of a service. */
export const files = { log: 'log', started: 'started.json', request: 'request.json', ended: 'ended.json' };

/** What a recorder writes when the command runs. */
export type Started = {
  /** PID of the recorder. */
  readonly recorder: number;
  /** PID of the command's first process. */
  readonly root: number;
};

/** What the engine writes before it signals the recorder. */
export type EndRequest = {
  /** Message for people. Null: the engine wants the service to end. */
  readonly reason: string | null;
  /** False: kill the processes without SIGTERM. */
  readonly isGentle: boolean;
};

/** What a recorder writes last. */
export type Ended = {
  /** Message for people. Null: the engine wanted the service to end. */
  readonly reason: string | null;
};
