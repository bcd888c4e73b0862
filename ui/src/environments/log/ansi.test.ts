import { expect, test } from 'vitest';
import { plainTextOf, runsOf } from './ansi.ts';

const esc = '\x1b';
const looks = (line: string) => runsOf(line).map(({ text, color, isBold }) => [text, color, isBold]);

test('colours and bold text of a terminal become runs', () => {
  expect(looks(`a ${esc}[31mred${esc}[0m b ${esc}[1;92mgood${esc}[22m still${esc}[39m end`)).toEqual([
    ['a ', null, false],
    ['red', 'red', false],
    [' b ', null, false],
    ['good', 'green', true],
    [' still', 'green', false],
    [' end', null, false],
  ]);
});

test('indexed and direct colours become the nearest one that is readable in both schemes', () => {
  expect(looks(`${esc}[38;5;196mr${esc}[38;2;20;30;220mb${esc}[38;5;244mgrey${esc}[38:5:51mc`)).toEqual([
    ['r', 'red', false],
    ['b', 'blue', false],
    ['grey', null, false],
    ['c', 'cyan', false],
  ]);
});

test('a background is left out and takes nothing with it', () => {
  expect(looks(`${esc}[48;5;2;31mx${esc}[7;42my`)).toEqual([
    ['x', 'red', false],
    ['y', 'red', false],
  ]);
});

test.each([
  ['a cursor that moves', `${esc}[2K${esc}[1Gdone`, 'done'],
  ['a link of a terminal', `${esc}]8;;https://example.com${esc}\\text${esc}]8;;${esc}\\`, 'text'],
  ['a title that never ends', `ok${esc}]0;title`, 'ok'],
  ['a progress bar', '10 %\r50 %\r100 %\r', '100 %'],
  ['other control characters', 'a\x00b\x07c\x9bd', 'abcd'],
  ['a sequence that is cut off', `end${esc}[3`, 'end3'],
  ['text that looks like markup', '<b>&amp;</b>', '<b>&amp;</b>'],
])('%s is shown as its text', (_, line, text) => {
  expect(plainTextOf(line)).toBe(text);
  expect(
    runsOf(line)
      .map((run) => run.text)
      .join(''),
  ).toBe(text);
});
