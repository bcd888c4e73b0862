import type { Command, Mark } from '../run-command.ts';
import type { Sandbox } from '../sandbox.ts';

/** What a recorder runs and records. */
export type Task = {
  /** Of the service. The recorder writes the files below in it. */
  readonly folder: string;
  readonly command: Omit<Command, 'output'>;
  /** Null: without isolation. */
  readonly sandbox: Sandbox | null;
  /** Values that no line of the log shows. */
  readonly redacted: readonly string[];
  readonly logBytes: number;
  /** Time between the request to end and the end, in ms. */
  readonly graceMs: number;
};

/** Of the processes of a service, in this folder. */
export function serviceMark(folder: string): Mark {
  return ['POSTERN_SERVICE', folder];
}

/** Of its recorder, which ends those. */
export function recorderMark(folder: string): Mark {
  return ['POSTERN_RECORDER', folder];
}

/** Names of files in the folder of a service. */
export const files = { log: 'log', started: 'started.json', request: 'request.json', ended: 'ended.json' };

/** What a recorder writes when the command runs. */
export type Started = {
  /** Of the recorder. */
  readonly recorder: number;
  /** Of the first process of the command. */
  readonly root: number;
};

/** What the engine writes before it signals the recorder. */
export type EndRequest = {
  /** In words; null: the end is wanted. */
  readonly reason: string | null;
  /** False: without asking the processes first. */
  readonly isGentle: boolean;
};

/** What a recorder writes last. */
export type Ended = {
  /** In words; null: the end was wanted. */
  readonly reason: string | null;
};
