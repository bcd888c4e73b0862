import { digestOf, type KeyFormat, shortestBody } from './key-value.ts';

/** Finds values of ours where no key may be, such as an address. Pure, so that a gateway without keys can do it. */
export type KeyWatch = {
  /** True when the text holds something shaped like a key. Cheap: it runs on every address. */
  mentions(text: string): boolean;
  /** Digests under which the values that the text holds would be stored. The values themselves are not kept. */
  digestsIn(text: string): string[];
};

export function createKeyWatch(format: KeyFormat): KeyWatch {
  const marks = ['_pat_', '_svc_'];
  const shortest = format.prefixOf('personal').length + shortestBody;
  return {
    mentions(text) {
      if (text.length < shortest) return false;
      // Percent-encoding could hide the underscore, so the decoded form is looked at when there is any.
      const plain = text.includes('%') ? decode(text) : text;
      return marks.some((mark) => plain.includes(mark)) && format.findAll(plain).length > 0;
    },
    digestsIn: (text) =>
      format.findAll(decode(text)).flatMap((value) => {
        // With letters glued to its end it is still the key.
        const whole = value.slice(0, format.prefixOf('personal').length + 50);
        const candidates = [...new Set([value, whole])];
        return candidates.filter((one) => format.parse(one).kind !== 'malformed').map(digestOf);
      }),
  };
}

/** Piece by piece: one broken piece elsewhere must not hide what the others spell. Keys are ASCII. */
function decode(text: string): string {
  return text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
