import { closeMessage } from './messages.ts';

/**
 * Names of prepared statements. All connections share one session of PGlite, and each client chooses its names as if it were
 * alone; many use the same. So each gets a name of its own there, also the statement without a name.
 */
export type StatementNames = {
  /** The message with the names that PGlite knows, and before it what makes room for it. */
  translated(message: Buffer): { readonly before: Buffer | undefined; readonly message: Buffer };
  /** What forgets all of them. */
  closing(): readonly Buffer[];
};

/** `connection`: no two have the same. */
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
    // A second one without a name replaces the first. Of any other name PostgreSQL says that it exists.
    if (name !== '') return { before: undefined, to: known ?? fresh(name) };
    return { before: known === undefined ? undefined : closeMessage(known), to: fresh(name) };
  }

  return {
    translated(message) {
      const at = placeOf(message);
      const end = at === undefined ? -1 : message.indexOf(0, at);
      // Without a name where one must be, PGlite says what is wrong.
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

/** Where the name of a statement begins: in Parse, Bind, and in Describe and Close when they are about a statement. */
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
