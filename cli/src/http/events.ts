/** One of the server-sent events of a log (HTML standard, section 9.2). */
export type ServerEvent = {
  readonly name: string;
  readonly id: string | undefined;
  readonly data: string;
};

/** The events of a stream, each as soon as it is whole. Comments, which keep the connection open, are left out. */
export async function* eventsIn(stream: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of stream) {
    text += decoder.decode(part, { stream: true });
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = fieldsIn(block);
      const data = fields.get('data');
      if (data !== undefined) yield { name: fields.get('event') ?? 'message', id: fields.get('id'), data };
    }
  }
}

function fieldsIn(block: string): Map<string, string> {
  const pairs = block.split('\n').flatMap((line) => {
    const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [[name, value] as const];
  });
  return new Map(pairs);
}
