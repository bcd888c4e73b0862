/**
 * Concurrent callers with the same question share one answer. A caller never gets the answer to a call that began before its
 * own: callers that arrive during a call share the next one.
 */
export type SharedAnswers = <T>(question: string, ask: () => Promise<T>) => Promise<T>;

type Slot = { readonly answer: Promise<unknown>; next?: Promise<unknown> };

export function createSharedAnswers(): SharedAnswers {
  const slots = new Map<string, Slot>();

  function begin<T>(question: string, ask: () => Promise<T>): Promise<T> {
    const answer = ask();
    const slot: Slot = { answer };
    slots.set(question, slot);
    const end = () => {
      if (slot.next === undefined) slots.delete(question);
    };
    answer.then(end, end);
    return answer;
  }

  return async <T>(question: string, ask: () => Promise<T>): Promise<T> => {
    const slot = slots.get(question);
    if (slot === undefined) return await begin(question, ask);
    slot.next ??= slot.answer.then(
      () => begin(question, ask),
      () => begin(question, ask),
    );
    // The same question has an answer of the same type.
    return (await slot.next) as T;
  };
}
