import {
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  parseDocument,
  type ErrorCode,
  type Node,
  type Pair,
} from 'yaml';
import { containsKey, maskKeys } from '../../core/key-shape.ts';
import { type Finding, maxProblems, type Problem, problemAt, type Said } from './problem.ts';

/**
 * Reads YAML as plain values with the line and column of each. It limits tokens, values and depth: otherwise a file of
 * 256 KiB can contain enough of them to occupy the process for seconds.
 */
export type YamlText =
  | { readonly kind: 'broken'; readonly problems: readonly Problem[] }
  | {
      readonly kind: 'read';
      readonly value: unknown;
      /** Problems of a readable text, such as a duplicate field. */
      readonly problems: readonly Problem[];
      problemOf(finding: Finding): Problem;
    };

/** Enough for 20 services with 100 variables each. */
export const maxTokens = 25_000;
/** Maximum values after every alias is replaced by its value. */
export const maxValues = 10_000;
/** Maximum characters of all texts and names after every alias is replaced: a few aliases of a long text are few values. */
export const maxCharacters = 1024 * 1024;
export const maxDepth = 20;
/** One mistake in YAML often causes further messages about the text after it. */
const maxSyntaxProblems = 10;

type Path = readonly (string | number)[];
type Tree = Node | null | undefined;

export function readYaml(text: string): YamlText {
  if (countTokens(text) > maxTokens) {
    const said = { message: `The file has more than ${maxTokens} YAML tokens.`, fix: smaller };
    return { kind: 'broken', problems: [problemAt(text, 0, { rule: 'size', ...said })] };
  }
  const document = parse(text);
  if (document === undefined) return { kind: 'broken', problems: [problemAt(text, 0, tooDeep)] };
  const mistakes = [...document.errors, ...document.warnings].filter(
    ({ pos: [offset] }, at, all) => all[at - 1]?.pos[0] !== offset,
  );
  if (mistakes.length === 0) return readTree(document.contents, text);
  return {
    kind: 'broken',
    problems: mistakes
      .slice(0, maxSyntaxProblems)
      .map(({ code, message, pos: [offset] }) =>
        problemAt(text, offset, { rule: 'yaml', ...wordsFor(code, message) }),
      ),
  };
}

/** Undefined: the text is nested so deeply that the recursive parser has no stack left. */
function parse(text: string) {
  // One text can cause 65,000 errors, and their unused stack traces would take most of the time.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return parseDocument<Node, false>(text, {
      schema: 'core',
      merge: false,
      resolveKnownTags: false,
      stringKeys: true,
      // It would compare every field with every other one of its map, which takes minutes for some files; see readMap().
      uniqueKeys: false,
      // It would quote lines of the file, including their secrets.
      prettyErrors: false,
      logLevel: 'error',
    });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function countTokens(text: string): number {
  let count = 0;
  for (const _token of new Lexer().lex(text)) {
    count += 1;
    if (count > maxTokens) break;
  }
  return count;
}

const smaller = 'Make the file smaller.';
const tooDeep = {
  rule: 'yaml',
  message: `The file is nested more than ${maxDepth} levels deep.`,
  fix: 'Remove levels.',
} as const;

/** The value of an anchor. `isOpen`: it is still being read, so an alias for it would contain itself. */
type Anchor = { readonly node: Tree; isOpen: boolean; value: unknown; size: Size };

/** Size of the values read so far, with every alias replaced. */
type Size = { readonly values: number; readonly characters: number };

/** Stops reading: the rest would only repeat the problem. */
class Unreadable extends Error {}

function readTree(contents: Tree, text: string): YamlText {
  const problems: Problem[] = [];
  const anchors = new Map<string, Anchor>();
  const standsFor = new Map<Node, Tree>();
  let total: Size = { values: 0, characters: 0 };

  function say(node: Tree, path: Path, said: Said): void {
    problems.push(problemAt(text, offsetOf(node) ?? 0, said, path));
    if (problems.length >= maxProblems) throw new Unreadable();
  }

  /** Adds up values and texts without visiting them: an alias counts as much as what it stands for. */
  function count(added: Size, node: Tree, path: Path): void {
    total = { values: total.values + added.values, characters: total.characters + added.characters };
    const isTooMany = total.values > maxValues;
    if (!isTooMany && total.characters <= maxCharacters) return;
    // A file that Postern reads has fewer characters: only aliases can exceed the limit.
    const isAliased = isAlias(node) || !isTooMany;
    const limit = isTooMany ? `${maxValues} values` : `${maxCharacters} characters of text`;
    say(node, path, {
      rule: isAliased ? 'alias' : 'size',
      message: `${isAliased ? 'With its aliases replaced, the file' : 'The file'} has more than ${limit}.`,
      fix: isAliased ? 'Use fewer aliases.' : smaller,
    });
    throw new Unreadable();
  }

  function read(node: Tree, path: Path): unknown {
    count({ values: 1, characters: 0 }, node, path);
    if (path.length > maxDepth) {
      say(node, path.slice(0, maxDepth), tooDeep);
      throw new Unreadable();
    }
    if (isAlias(node)) return readAlias(node, path);
    const anchorName = anchorOf(node);
    if (anchorName === undefined) return readContent(node, path);
    const before = total;
    const anchor: Anchor = { node, isOpen: true, value: undefined, size: total };
    anchors.set(anchorName, anchor);
    anchor.value = readContent(node, path);
    anchor.size = {
      values: total.values - before.values,
      characters: total.characters - before.characters,
    };
    anchor.isOpen = false;
    return anchor.value;
  }

  function readAlias(node: Extract<Tree, { source: string }>, path: Path): unknown {
    const anchor = anchors.get(node.source);
    if (anchor === undefined || anchor.isOpen) {
      say(node, path, {
        rule: 'alias',
        message:
          anchor === undefined
            ? `There is no anchor &${node.source} above this alias.`
            : `The alias *${node.source} is part of what it stands for.`,
        fix: anchor === undefined ? `Write &${node.source} before the value.` : 'Remove the alias.',
      });
      throw new Unreadable();
    }
    count(anchor.size, node, path);
    standsFor.set(node, anchor.node);
    return anchor.value;
  }

  function readContent(node: Tree, path: Path): unknown {
    if (isMap(node)) return readMap(node.items, path);
    if (isSeq(node)) return node.items.map((item, at) => read(asTree(item), [...path, at]));
    if (!isScalar(node)) return null;
    if (typeof node.value === 'string') count({ values: 0, characters: node.value.length }, node, path);
    refuseKey(node, path);
    return node.value;
  }

  function readMap(pairs: readonly Pair[], path: Path): unknown {
    // Without a prototype, so that no field of the file can be mistaken for one of JavaScript's own.
    const map: Record<string, unknown> = Object.create(null);
    for (const pair of pairs) {
      const key = asTree(pair.key);
      const name = isScalar(key) ? key.value : null;
      if (typeof name !== 'string') {
        say(key, path, {
          rule: 'yaml',
          message: 'The name of a field is not a text.',
          fix: 'Write a plain name, such as web.',
        });
        continue;
      }
      const here = [...path, name];
      count({ values: 0, characters: name.length }, key, here);
      refuseKey(key, here);
      if (name === '<<' || name === '__proto__') {
        say(key, here, name === '<<' ? mergeKey : { rule: 'name', ...protoKey });
      } else if (Object.hasOwn(map, name)) {
        say(key, here, {
          rule: 'duplicate_field',
          message: `The field ${name} is here twice.`,
          fix: 'Keep one of them.',
        });
      } else map[name] = read(asTree(pair.value), here);
    }
    return map;
  }

  /** Finds keys that escapes or line breaks hide. keysIn() finds visible ones. */
  function refuseKey(node: Tree, path: Path): void {
    if (!isScalar(node) || typeof node.value !== 'string' || !containsKey(node.value)) return;
    const [from = 0, to = 0] = node.range ?? [];
    if (!containsKey(text.slice(from, to))) say(node, path, keyFound);
  }

  /** The offset of the field in the text, or of its closest existing parent. */
  function find(path: Path, at: Finding['at']): number {
    let node: Tree = contents;
    let offset = 0;
    for (const [index, step] of path.entries()) {
      node = resolved(node);
      if (isMap(node)) {
        const pair = node.items.find(({ key }) => isScalar(key) && key.value === step);
        if (pair === undefined) break;
        offset = offsetOf(asTree(pair.key)) ?? offset;
        node = asTree(pair.value);
      } else if (isSeq(node) && typeof step === 'number') {
        node = asTree(node.items[step]);
        offset = offsetOf(node) ?? offset;
      } else break;
      const isLast = index === path.length - 1;
      if (isLast && at === 'value' && isScalar(resolved(node)) && hasText(node))
        offset = offsetOf(node) ?? offset;
    }
    return offset;
  }

  const resolved = (node: Tree): Tree => (isAlias(node) ? standsFor.get(node) : node);

  let value: unknown;
  try {
    value = read(contents, []);
  } catch (error) {
    if (error instanceof Unreadable) return { kind: 'broken', problems };
    throw error;
  }
  return {
    kind: 'read',
    value,
    problems,
    problemOf: (finding) => problemAt(text, find(finding.path, finding.at), finding, finding.path),
  };
}

function offsetOf(node: Tree): number | undefined {
  return node?.range?.[0];
}

/** False for an empty value: its position may be lines below its field. */
function hasText(node: Tree): boolean {
  const [from = 0, to = 0] = node?.range ?? [];
  return to > from;
}

function anchorOf(node: Tree): string | undefined {
  return isMap(node) || isSeq(node) || isScalar(node) ? node.anchor : undefined;
}

function asTree(value: unknown): Tree {
  return isNode(value) ? value : null;
}

export const keyFound = {
  rule: 'key',
  message: 'Here is a value that looks like an API key.',
  fix: 'Remove it and revoke the key. Refer to a secret in secrets instead.',
} as const;

const mergeKey = {
  rule: 'yaml',
  message: 'Merge keys (<<) are not supported.',
  fix: 'Write the fields out, or use environment.env for variables of every service.',
} as const;

const protoKey = {
  message: 'No field can have the name __proto__.',
  fix: 'Choose another name.',
} as const;

/** Messages for the most common mistakes; for others, the message of the YAML library. */
function wordsFor(code: ErrorCode, message: string): Pick<Finding, 'message' | 'fix'> {
  return known[code] ?? { message: `${maskKeys(message.split('\n', 1)[0] ?? '')}.`, fix: quoteIt };
}

const quoteIt = 'Correct the YAML here. Put a text with a colon, #, or quotation marks into quotation marks.';

const known: Readonly<Partial<Record<ErrorCode, Pick<Finding, 'message' | 'fix'>>>> = {
  TAB_AS_INDENT: { message: 'The line is indented with a tab.', fix: 'Indent it with spaces.' },
  BAD_INDENT: {
    message: 'The indentation does not fit the lines around it.',
    fix: 'Indent the fields of one map equally.',
  },
  MULTIPLE_DOCS: {
    message: 'The file has more than one YAML document.',
    fix: 'Remove the line --- and everything after it.',
  },
  NON_STRING_KEY: {
    message: 'The name of a field is a list or a map.',
    fix: 'Write a plain name, such as web.',
  },
  TAG_RESOLVE_FAILED: { message: 'YAML tags (!name) are not supported.', fix: 'Remove the tag.' },
  RESOURCE_EXHAUSTION: { message: 'The file is nested too deeply.', fix: 'Remove levels.' },
};
