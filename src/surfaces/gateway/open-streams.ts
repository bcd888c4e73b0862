import type { ServerResponse } from 'node:http';

/**
 * Private bodies under way. One that takes longer than its grant, or whose site changed who may see it, is cut
 * (contract 10.10).
 */
export type OpenStreams = {
  /** Call the answer when the body is sent. */
  enter(response: ServerResponse, stream: PrivateStream): () => void;
};

export type PrivateStream = {
  readonly siteId: string;
  readonly label: string;
  readonly epoch: number;
  readonly msLeft: number;
};

export function createOpenStreams(deps: {
  subscribe(listener: (change: { topic: string; subject: string }) => void): void;
  /** The epoch under which a label may be seen now; undefined when it may not be at all. */
  epochOf(label: string): Promise<number | undefined>;
}): OpenStreams {
  const open = new Set<PrivateStream & { readonly cut: () => void }>();

  async function recheck(label: string): Promise<void> {
    // What cannot be told is not sent.
    const epoch = await deps.epochOf(label).catch(() => undefined);
    for (const stream of open) if (stream.label === label && stream.epoch !== epoch) stream.cut();
  }

  deps.subscribe(({ topic, subject }) => {
    if (topic === 'config') for (const { label } of open) void recheck(label);
    if (topic !== 'site') return;
    const labels = [...open].filter(({ siteId }) => siteId === subject).map(({ label }) => label);
    for (const label of new Set(labels)) void recheck(label);
  });

  return {
    enter(response, stream) {
      const cut = () => response.destroy();
      const entry = { ...stream, cut };
      open.add(entry);
      // The site may have changed between the check of the grant and now.
      void recheck(stream.label);
      const timer = setTimeout(cut, Math.max(0, stream.msLeft));
      timer.unref();
      return () => {
        clearTimeout(timer);
        open.delete(entry);
      };
    },
  };
}
