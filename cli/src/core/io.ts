/** What a verb uses of the process, so that a test can be the process. */
export type Io = {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The result, and nothing else. */
  out(text: string | Uint8Array): Promise<void>;
  /** Progress, questions and mistakes. */
  err(text: string): void;
  /** Whether a person sees `out`; its width in characters. */
  readonly outTerminal: { readonly columns: number } | null;
  /** Whether a person sees `err`, where a line can replace the one before. */
  readonly errIsTerminal: boolean;
  /** Whether a person can answer a question. */
  readonly canAsk: boolean;
  /** One line that the person types. */
  ask(question: string): Promise<string>;
  /** All of stdin. */
  readInput(): Promise<string>;
  /** Unix milliseconds. */
  now(): number;
  wait(ms: number): Promise<void>;
};
