/** What each exit code means. Documented in docs/reference/cli.md. */
export const exitCodes = [
  [0, 'Done.'],
  [
    1,
    'Failed: the server had an error, or refused the request without a more precise code. Also: a check says no, `scan` found a key, `keys open` has the wrong private key, or a person declined a question.',
  ],
  [2, 'Wrong usage: an argument, an option, a setting or a value of the request. Nothing was changed.'],
  [3, 'Not found: there is no such resource, or this caller may not see it.'],
  [4, 'Authentication: no credential, an invalid one, or one that may not do this.'],
  [5, 'Too many requests.'],
  [6, 'A conflict with the current state, or a limit.'],
  [7, 'Unavailable: the server or something that it needs cannot be reached.'],
  [8, 'Watched for as long as --timeout allows, without an end.'],
] as const;

export type ExitCode = (typeof exitCodes)[number][0];

/** A verb that did not succeed, as both forms of the output show it. */
export class Failure extends Error {
  readonly code: string;
  readonly exitCode: ExitCode;
  readonly hint: string | null;
  readonly requestId: string | null;
  readonly details: unknown;

  constructor(
    code: string,
    exitCode: ExitCode,
    message: string,
    { hint = null, requestId = null, details = null }: FailureOptions = {},
  ) {
    super(message);
    this.name = 'Failure';
    this.code = code;
    this.exitCode = exitCode;
    this.hint = hint;
    this.requestId = requestId;
    this.details = details;
  }
}

type FailureOptions = {
  readonly hint?: string | null;
  readonly requestId?: string | null;
  /** What the server adds, such as each file that it refused. */
  readonly details?: unknown;
};

/** The command line or a setting is wrong. Nothing was sent. */
export function wrongUsage(message: string, hint?: string): Failure {
  return new Failure('usage', 2, message, hint === undefined ? {} : { hint });
}

/** A person answered no to a question. */
export function declined(hint?: string): Failure {
  return new Failure('declined', 1, 'You declined. Nothing was sent.', hint === undefined ? {} : { hint });
}

const byStatus: Readonly<Record<number, ExitCode>> = {
  400: 2,
  401: 4,
  403: 4,
  404: 3,
  405: 2,
  408: 7,
  409: 6,
  410: 6,
  412: 6,
  413: 6,
  415: 2,
  428: 2,
  429: 5,
  503: 7,
  507: 6,
};

/** The exit code for a refusal of the server. */
export function exitCodeOf(status: number, code: string): ExitCode {
  if (code === 'quota_exceeded') return 6;
  if (code === 'invalid_grant') return 4;
  return byStatus[status] ?? 1;
}
