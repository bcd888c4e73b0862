/** A setting that cannot be used: its name, what is wrong, and the fix. Never repeats a value that may be secret. */
export type ConfigMistake = { readonly setting: string; readonly problem: string; readonly fix: string };

export class ConfigError extends Error {
  readonly mistakes: readonly ConfigMistake[];
  constructor(mistakes: readonly ConfigMistake[]) {
    super(mistakes.map(({ setting, problem, fix }) => `  ${setting}: ${problem}\n    ${fix}`).join('\n'));
    this.name = 'ConfigError';
    this.mistakes = mistakes;
  }
}
