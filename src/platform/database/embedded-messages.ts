import { type Engine, type EngineStart, openEngine } from './embedded-engine.ts';

/** Messages between embedded.ts and the thread of the database. */
export type Question =
  | { readonly id: number; readonly kind: 'open' | 'dump' | 'close' }
  | {
      readonly id: number;
      readonly kind: 'query';
      readonly text: string;
      readonly values: readonly unknown[];
    };

export type Answer =
  | { id: number; ok: true; rows: unknown[]; affected: number }
  | { id: number; ok: false; message: string; code?: string | undefined; constraint?: string | undefined };

export type News = { kind: 'space'; isLow: boolean; freeBytes: number };

/** @returns what takes a question; `tell` gets the answer to each, and news */
export function answerMessages(
  start: EngineStart,
  tell: (told: Answer | News) => void,
): (question: Question) => void {
  let opened: Engine | undefined;

  async function answer(question: Question): Promise<{ rows: unknown[]; affected: number }> {
    const nothing = { rows: [], affected: 0 };
    if (question.kind === 'open') {
      opened = await openEngine(start, (isLow, freeBytes) => tell({ kind: 'space', isLow, freeBytes }));
      return nothing;
    }
    if (opened === undefined) throw new Error('The embedded database is not open.');
    if (question.kind === 'query') return await opened.run(question.text, question.values);
    if (question.kind === 'dump') return { ...nothing, rows: [await opened.dump()] };
    await opened.close();
    return nothing;
  }

  return (question) => {
    const { id } = question;
    answer(question).then(
      ({ rows, affected }) => tell({ id, ok: true, rows, affected }),
      (error: unknown) => {
        const failure = error as { message?: string; code?: string; constraint?: string };
        const { message = 'The statement failed.', code, constraint } = failure;
        tell({ id, ok: false, message, code, constraint });
      },
    );
  };
}
