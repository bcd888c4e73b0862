import { expect, test } from 'vitest';
import { tools } from '../../../src/surfaces/mcp/tools.ts';
import { toolGroups } from './tools.ts';

test('the pages know every tool of the endpoint, and whether it reads, changes or destroys', () => {
  const shown = toolGroups.flatMap((group) => group.tools.map(({ name }) => `${name}: ${group.effect}`));
  expect(shown.toSorted()).toEqual(tools.map(({ name, effect }) => `${name}: ${effect}`).toSorted());
});
