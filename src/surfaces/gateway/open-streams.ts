import { hour, second } from '../../core/clock.ts';
import { concerns } from '../../platform/database/change-feed.ts';
import type { HttpResponse } from '../../platform/fast-http/fast-server.ts';

/**
 * Tracks response bodies under way. The gateway cuts a body that outlasts its grant or its site. It also cuts a body
 * when the site's access changes or Sites is switched off (contract 10.10).
 */
export type OpenStreams = {
  /** Call the returned function when the body is sent. */
  enter(response: HttpResponse, stream: OpenStream): () => void;
};

export type OpenStream = {
  readonly siteId: string;
  readonly label: string;
  readonly epoch: number;
  /** Until the end of the grant or of the site; Infinity = no end is set. */
  readonly msLeft: number;
};

/** Node fires a timer of more than 24 days at once, so a long wait is checked again after this time. */
const maxTimerMs = hour;

export function createOpenStreams(deps: {
  subscribe(listener: (change: { topic: string; subject: string }) => void): void;
  /** The epoch in which a label may be read now; undefined when it may not be read at all. */
  epochOf(label: string): number | undefined | Promise<number | undefined>;
  /** The value that this process read last. */
  isEnabled(): boolean;
  /** Called when the configuration changes, and again while it cannot be read. */
  readEnabled(): Promise<boolean>;
}): OpenStreams {
  type Entry = OpenStream & { readonly cut: () => void; readonly endsAt: number };
  const open = new Set<Entry>();
  // One timer for all streams: most bodies are sent in a moment, and a timer for each would cost more than that.
  let timer: { readonly at: number; readonly handle: NodeJS.Timeout } | undefined;

  function cutAt(endsAt: number): void {
    if (timer !== undefined && timer.at <= endsAt) return;
    if (endsAt === Infinity) return;
    clearTimeout(timer?.handle);
    const handle = setTimeout(cutEnded, Math.min(maxTimerMs, Math.max(0, endsAt - performance.now())));
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

  /** Cuts the stream unless it may still be read. A check that fails cuts it too. */
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
    // Also while no stream is open: a body may begin before the change is read.
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
      // Destroys the connection, because a response that waits behind another has no socket to destroy.
      const cut = () => void response.req.socket.destroy();
      const entry: Entry = { ...stream, cut, endsAt };
      open.add(entry);
      // The site, or the switch of Sites, may have changed between the check and now.
      if (deps.isEnabled()) check(entry);
      else cut();
      cutAt(endsAt);
      return () => void open.delete(entry);
    },
  };
}
