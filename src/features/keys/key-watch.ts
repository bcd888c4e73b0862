import { mayHoldKey } from '../../core/key-shape.ts';
import { digestOf, type KeyFormat, minBodyLength } from './key-value.ts';

/** Finds key values where no key may be, such as in a URL. Pure, so that a gateway, which has no keys, can use it. */
export type KeyWatch = {
  /** True when the text contains something shaped like a key. Cheap, because it runs on the URL of every request. */
  mentions(text: string): boolean;
  /** The digests of the key values in the text, as they would be stored. The values themselves are not kept. */
  digestsIn(text: string): string[];
};

export function createKeyWatch(format: KeyFormat): KeyWatch {
  const shortest = format.prefixOf('personal').length + minBodyLength;
  return {
    mentions(text) {
      if (text.length < shortest) return false;
      // Percent-encoding could hide the underscore, so search the decoded form.
      const plain = text.includes('%') ? decode(text) : text;
      return mayHoldKey(plain) && format.findAll(plain).length > 0;
    },
    digestsIn: (text) => format.valuesIn(decode(text)).map(digestOf),
  };
}

/** How often a text is decoded: a link inside a link is encoded as often as it is nested. */
const maxDepth = 5;

/**
 * Decodes each escape on its own, so that one invalid escape does not stop the decoding of the others. Keys are ASCII.
 * An escaped `%`, however often escaped, is decoded with what follows it: `%25255F` is `_`.
 */
function decode(text: string): string {
  let plain = text;
  for (let depth = 0; depth < maxDepth && plain.includes('%'); depth += 1)
    plain = plain.replaceAll(/%(?:25)*([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
  return plain;
}
