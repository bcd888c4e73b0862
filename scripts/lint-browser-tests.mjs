/**
 * Rules of oxlint for test/browser. A page shows the result of a step some time after the step ends. An assertion that reads the
 * page once therefore fails on a busy machine. An assertion that retries fails only for a fault.
 */
const readings = new Set([
  'allInnerTexts',
  'allTextContents',
  'ariaSnapshot',
  'boundingBox',
  'content',
  'count',
  'evaluate',
  'evaluateAll',
  'getAttribute',
  'innerHTML',
  'innerText',
  'inputValue',
  'isChecked',
  'isDisabled',
  'isEditable',
  'isEnabled',
  'isHidden',
  'isVisible',
  'textContent',
  'title',
  'url',
]);
const message =
  'This assertion reads the page once. Let it retry: await expect.poll(() => page.getByRole(…).count()).toBe(0).';

const noReadingOnce = {
  create(context) {
    const { sourceCode } = context;

    /** This node and everything below it, without the functions in it unless asked. */
    function* within(node, isFunctionIncluded = false) {
      yield node;
      for (const key of sourceCode.visitorKeys[node.type] ?? [])
        for (const child of [node[key]].flat())
          if (child && (isFunctionIncluded || !/Function/.test(child.type)))
            yield* within(child, isFunctionIncluded);
    }

    function definitionOf(identifier) {
      for (let scope = sourceCode.getScope(identifier); scope; scope = scope.upper) {
        const variable = scope.set.get(identifier.name);
        if (variable) return variable.defs[0];
      }
      return undefined;
    }

    /** A call such as locator.count(). The URL of an awaited response or download does not change any more. */
    const isReading = ({ type, callee }) =>
      type === 'CallExpression' &&
      callee.type === 'MemberExpression' &&
      readings.has(callee.property.name) &&
      !(callee.property.name === 'url' && callee.object.type === 'AwaitExpression');

    /** A call of a helper that reads: one of a file *-pages.ts, or one of this file with a reading in it. */
    function isHelper({ type, callee }) {
      if (type !== 'CallExpression' || callee.type !== 'Identifier') return false;
      const definition = definitionOf(callee);
      if (definition?.type === 'ImportBinding') return definition.parent.source.value.endsWith('-pages.ts');
      const body = definition?.node.init ?? definition?.node;
      return body !== undefined && [...within(body, true)].some(isReading);
    }

    /** A variable that holds what was read. A request may send it, and a script that `evaluate` runs may do more than read. */
    function holdsReading(node, argument) {
      if (node.type !== 'Identifier' || isInRequest(node, argument)) return false;
      const init = definitionOf(node)?.node.init;
      if (!init) return false;
      return [...within(init)].some((one) => isReading(one) && one.callee.property.name !== 'evaluate');
    }

    const isInRequest = (node, argument) =>
      [...within(argument)].some((one) => one.type === 'AwaitExpression' && [...within(one)].includes(node));

    return {
      CallExpression(node) {
        const [argument] = node.arguments;
        if (node.callee.type !== 'Identifier' || node.callee.name !== 'expect' || !argument) return;
        const found = [...within(argument)].find(
          (one) => isReading(one) || isHelper(one) || holdsReading(one, argument),
        );
        if (found) context.report({ node: found, message });
      },
    };
  },
};

const noNetworkIdle = {
  create: (context) => ({
    Literal(node) {
      if (node.value !== 'networkidle') return;
      context.report({
        node,
        message:
          'A page that asks again is never idle. Wait for what the step is about: await page.getByText(…).waitFor().',
      });
    },
  }),
};

export default {
  meta: { name: 'browser-tests' },
  rules: { 'no-reading-once': noReadingOnce, 'no-network-idle': noNetworkIdle },
};
