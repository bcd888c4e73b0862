import { AppError } from '../core/errors.ts';

/**
 * Runs at most `width` tasks at once, and at most `perSender` of one sender; waiting senders take turns. A sender that
 * already has `queue` waiting tasks is refused with `overloaded`. So a flood delays only its own sender (contract 10.12).
 */
export type FairQueue = <T>(sender: string, task: () => Promise<T>) => Promise<T>;

type Sender = { running: number; readonly waiting: (() => void)[] };

export function createFairQueue(limits: { width: number; perSender: number; queue: number }): FairQueue {
  const { width, perSender, queue } = limits;
  // In the order of turns: a sender that got a turn moves to the end.
  const senders = new Map<string, Sender>();
  let running = 0;

  function senderOf(name: string): Sender {
    let sender = senders.get(name);
    if (sender === undefined) senders.set(name, (sender = { running: 0, waiting: [] }));
    return sender;
  }

  function begin(name: string, sender: Sender): void {
    running += 1;
    sender.running += 1;
    senders.delete(name);
    senders.set(name, sender);
  }

  function end(name: string, sender: Sender): void {
    running -= 1;
    sender.running -= 1;
    senders.delete(name);
    if (sender.running > 0 || sender.waiting.length > 0) senders.set(name, sender);
    startNext();
  }

  function startNext(): void {
    for (const [name, sender] of senders) {
      if (running >= width) return;
      if (sender.running >= perSender) continue;
      const start = sender.waiting.shift();
      if (start === undefined) continue;
      begin(name, sender);
      start();
      return;
    }
  }

  return async function run<T>(name: string, task: () => Promise<T>): Promise<T> {
    const sender = senderOf(name);
    if (running < width && sender.running < perSender) begin(name, sender);
    else if (sender.waiting.length < queue) await new Promise<void>((start) => sender.waiting.push(start));
    else throw new AppError('overloaded', { retryAfterSeconds: 1 });
    try {
      return await task();
    } finally {
      end(name, sender);
    }
  };
}
