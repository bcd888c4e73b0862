/** A problem of a postern.yaml, as the server names it. */
export type Problem = {
  readonly line: number;
  readonly column: number;
  readonly message: string;
  readonly fix: string;
};

/** As compilers print it, so that editors find the place: `file:line:column message`. */
export function problemText({ line, column, message, fix }: Problem, file = 'postern.yaml'): string {
  return `${file}:${line}:${column} ${message} ${fix}`;
}
