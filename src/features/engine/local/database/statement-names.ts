import { closeMessage } from './messages.ts';

/**
 * Names of prepared statements. All connections share one session of PGlite, and many clients choose the same names. So each
 * statement gets a unique name there, even the unnamed one.
 */
export type StatementNames = {
  /** The message with PGlite's names. `before`: messages to send first. */
  translated(message: Buffer): { readonly before: Buffer | undefined; readonly message: Buffer };
  /** Messages that delete all statements of the connection. */
  closing(): readonly Buffer[];
};

/** `connection`: a unique number. */
export function createStatementNames(connection: number): StatementNames {
  /** Name that the client chose → name in PGlite. */
  const names = new Map<string, string>();
  let count = 0;

  function fresh(name: string): string {
    count += 1;
    const own = `c${connection}_${count}`;
    names.set(name, own);
    return own;
  }

  function parsed(name: string) {
    const known = names.get(name);
    // A new unnamed statement replaces the old one. For any other name, PostgreSQL reports that it exists.
    if (name !== '') return { before: undefined, to: known ?? fresh(name) };
    return { before: known === undefined ? undefined : closeMessage(known), to: fresh(name) };
  }

  return {
    translated(message) {
      const at = placeOf(message);
      const end = at === undefined ? -1 : message.indexOf(0, at);
      // PGlite reports the error when the name is missing.
      if (at === undefined || end === -1) return { before: undefined, message };
      const name = message.toString('latin1', at, end);
      const type = message.toString('latin1', 0, 1);
      const found = type === 'P' ? parsed(name) : { before: undefined, to: names.get(name) ?? `?${name}` };
      if (type === 'C') names.delete(name);
      return { before: found.before, message: replaced(message, at, end, found.to) };
    },
    closing: () => [...names.values()].map(closeMessage),
  };
}

/** Offset of the statement name in Parse and Bind, and in Describe and Close of a statement. */
function placeOf(message: Buffer): number | undefined {
  const type = message.toString('latin1', 0, 1);
  if (type === 'P') return 5;
  if (type === 'B') return message.indexOf(0, 5) === -1 ? undefined : message.indexOf(0, 5) + 1;
  if ((type === 'D' || type === 'C') && message.toString('latin1', 5, 6) === 'S') return 6;
  return undefined;
}

function replaced(message: Buffer, from: number, to: number, name: string): Buffer {
  const made = Buffer.concat([message.subarray(0, from), Buffer.from(name, 'latin1'), message.subarray(to)]);
  made.writeInt32BE(made.length - 1, 1);
  return made;
}
