import { ConfigError } from './config-error.ts';

/** What the engine of Environments tells the program in a pod. It reads no other setting. */
export type PodSettings = {
  /** Full URL of /api/v2/environment-files. */
  readonly url: string;
  readonly ticket: string;
  /** Where the engine finds why the program failed. */
  readonly terminationFile: string;
};

/** @throws ConfigError */
export function readPodSettings(env: NodeJS.ProcessEnv = process.env): PodSettings {
  const { TRANSFER_URL: url = '', TRANSFER_TICKET: ticket = '', TERMINATION_FILE: file } = env;
  const fix = 'The engine of Environments sets it in its pods. The command has no other use.';
  const mistakes = [
    ...(/^https?:/.test(url) && URL.canParse(url)
      ? []
      : [{ setting: 'TRANSFER_URL', problem: 'is not an http or https URL', fix }]),
    // Fetch would repeat other characters in its error.
    ...(/^[\w-]{43}$/.test(ticket) ? [] : [{ setting: 'TRANSFER_TICKET', problem: 'is not a ticket', fix }]),
  ];
  if (mistakes.length > 0) throw new ConfigError(mistakes);
  return { url, ticket, terminationFile: file ?? '/dev/termination-log' };
}
