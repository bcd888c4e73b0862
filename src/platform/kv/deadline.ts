/**
 * The promise's result, or a rejection with `late()` when it takes longer than `ms`. After a pause of this process (a
 * long collection, a busy loop) timers fire before sockets are read. So one turn of the event loop lets a response that
 * has arrived win: our own pause must not look like an unavailable store.
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
        // The rejection is passed on unchanged.
        reject(error as Error);
      },
    );
  });
}
