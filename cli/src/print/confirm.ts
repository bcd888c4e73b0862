import type { Io } from '../core/io.ts';

/** Whether the person answers yes; any other answer means no. */
export async function isConfirmed(question: string, io: Pick<Io, 'ask'>): Promise<boolean> {
  const answer = await io.ask(`${question} [y/N] `);
  return /^y(?:es)?$/i.test(answer.trim());
}
