/**
 * The promise's outcome, or `late()` as a rejection when it takes longer than `ms`. After a pause of this process
 * (a long collection, a busy loop) timers fire before sockets are read; one turn of the loop lets an answer that
 * has arrived win, so that our own pause is not taken for a dead store.
 */
export function within<T>(ms: number, promise: Promise<T>, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => setImmediate(() => reject(late())), ms);
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        // As the promise gave it.
        reject(error as Error);
      },
    );
  });
}
