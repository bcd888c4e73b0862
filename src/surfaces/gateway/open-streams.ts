import { hour, second } from '../../core/clock.ts';
import { concerns } from '../../platform/database/changes.ts';
import type { HttpResponse } from '../../platform/fast-http/fast-server.ts';

/**
 * Bodies under way. One that takes longer than its grant or its site lasts, whose site changed who may see it, or that
 * finds Sites switched off, is cut (contract 10.10).
 */
export type OpenStreams = {
  /** Call the answer when the body is sent. */
  enter(response: HttpResponse, stream: OpenStream): () => void;
};

export type OpenStream = {
  readonly siteId: string;
  readonly label: string;
  readonly epoch: number;
  /** Of the grant, or of the site; Infinity = no end is set. */
  readonly msLeft: number;
};

/** Timers of more than 24 days fire at once; this one looks again. */
const longestTimerMs = hour;

export function createOpenStreams(deps: {
  subscribe(listener: (change: { topic: string; subject: string }) => void): void;
  /** The epoch under which a label may be seen now; undefined when it may not be at all. */
  epochOf(label: string): number | undefined | Promise<number | undefined>;
  /** As this process read it last. */
  isEnabled(): boolean;
  /** Asked when the configuration changed, and again while it cannot be read. */
  readEnabled(): Promise<boolean>;
}): OpenStreams {
  type Entry = OpenStream & { readonly cut: () => void; readonly endsAt: number };
  const open = new Set<Entry>();
  // One timer for all of them: most bodies are sent in a moment, and a timer each would cost more than that.
  let timer: { readonly at: number; readonly handle: NodeJS.Timeout } | undefined;

  function cutAt(endsAt: number): void {
    if (timer !== undefined && timer.at <= endsAt) return;
    if (endsAt === Infinity) return;
    clearTimeout(timer?.handle);
    const handle = setTimeout(cutEnded, Math.min(longestTimerMs, Math.max(0, endsAt - performance.now())));
    handle.unref();
    timer = { at: endsAt, handle };
  }

  function cutEnded(): void {
    timer = undefined;
    const now = performance.now();
    for (const stream of open) {
      if (stream.endsAt <= now) stream.cut();
      else cutAt(stream.endsAt);
    }
  }

  /** Whether it may still be seen. What cannot be told is not sent. */
  function check(stream: Entry): void {
    const settle = (epoch: number | undefined) => {
      if (stream.epoch !== epoch) stream.cut();
    };
    const epoch = deps.epochOf(stream.label);
    if (epoch instanceof Promise) epoch.then(settle, () => stream.cut());
    else settle(epoch);
  }

  deps.subscribe((change) => {
    const { topic } = change;
    // Also while nothing is open: bodies may begin before the change is read.
    if (topic === 'config') void followSwitch();
    if (topic !== 'site') return;
    for (const stream of open) if (concerns(change, stream.siteId)) check(stream);
  });

  async function followSwitch(): Promise<void> {
    try {
      if (!(await deps.readEnabled())) cutAll();
    } catch {
      cutAll();
      setTimeout(() => void followSwitch(), second).unref();
    }
  }

  function cutAll(): void {
    for (const { cut } of open) cut();
  }

  return {
    enter(response, stream) {
      const endsAt = performance.now() + stream.msLeft;
      // The connection, because an answer that waits behind another has none to be destroyed with.
      const cut = () => void response.req.socket.destroy();
      const entry: Entry = { ...stream, cut, endsAt };
      open.add(entry);
      // The site, or Sites as a whole, may have changed between the check and now.
      if (deps.isEnabled()) check(entry);
      else cut();
      cutAt(endsAt);
      return () => void open.delete(entry);
    },
  };
}
