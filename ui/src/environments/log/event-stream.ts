/** One server-sent event. `id`: the id of the last event that had one. */
export type StreamEvent = { readonly id: string; readonly event: string; readonly data: string };

/** Reads server-sent events as they arrive (HTML standard, section 9.2.6). EventSource cannot show why a request was refused. */
export function eventStreamReader(startId: string) {
  let buffered = '';
  let id = startId;
  let event = '';
  let data: string[] = [];

  function line(text: string): StreamEvent | null {
    if (text === '') {
      const found = data.length === 0 ? null : { id, event: event || 'message', data: data.join('\n') };
      event = '';
      data = [];
      return found;
    }
    const colon = text.indexOf(':');
    const field = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? '' : text.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') data.push(value);
    else if (field === 'event') event = value;
    else if (field === 'id' && !value.includes('\0')) id = value;
    return null;
  }

  /** The events that are complete after this chunk. */
  return (chunk: string): StreamEvent[] => {
    const lines = (buffered + chunk).split('\n');
    buffered = lines.pop() ?? '';
    return lines.flatMap((text) => line(text.replace(/\r$/, '')) ?? []);
  };
}
