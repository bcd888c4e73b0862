/** A problem of a postern.yaml, as the server names it. */
export type Problem = {
  readonly line: number;
  readonly column: number;
  readonly message: string;
  readonly fix: string;
};

/** A problem in the form `file:line:column message`, which compilers print and editors open. */
export function problemText({ line, column, message, fix }: Problem, file = 'postern.yaml'): string {
  return `${file}:${line}:${column} ${message} ${fix}`;
}
