import { expect, test } from 'vitest';
import { createTimedLines } from './timed-lines.ts';

const time = (second: number, nano = 0) => `2026-01-01T00:00:0${second}.${String(nano).padStart(9, '0')}Z`;
const at = (second: number) => Date.parse(time(second));

/** Returns the output for connections that each send these chunks. */
function read(connections: readonly (readonly string[])[], readUntil?: number) {
  const output: [at: number, text: string][] = [];
  const lines = createTimedLines((ms, chunk) => output.push([ms, chunk.toString()]), readUntil);
  for (const chunks of connections) {
    lines.begin();
    for (const chunk of chunks) lines.push(Buffer.from(chunk));
  }
  return { output, text: output.map(([, chunk]) => chunk).join(''), lastTime: lines.lastTime };
}

test('times are taken off, wherever the chunks end', () => {
  const log = `${time(1)} one\n${time(2)} two three\n${time(2)} \n${time(3)} fo`;
  expect(read([[log]]).output).toEqual([
    [at(1), 'one\n'],
    [at(2), 'two three\n\n'],
    [at(3), 'fo'],
  ]);
  expect(read([log.split('')]).text).toBe('one\ntwo three\n\nfo');
});

test('a lost connection doubles no line and loses none', () => {
  const all = `${time(1)} one\n${time(1)} two\n${time(1, 5)} three\n${time(2)} four\n`;
  for (let end = 0; end <= all.length; end += 1)
    for (const middle of [[], [all.slice(0, 20)], [all.slice(0, 60)]])
      expect(read([[all.slice(0, end)], middle, [all]]).text).toBe('one\ntwo\nthree\nfour\n');
});

test('it asks for what follows the last complete line', () => {
  expect(read([[`${time(1)} one\n${time(2)} tw`]]).lastTime).toBe(time(1));
  expect(read([[]]).lastTime).toBeUndefined();
});

test('what an earlier process read is left out, and so is what the kubelet says without a time', () => {
  const log = `${time(1)} one\nunable to retrieve container logs\n${time(2)} two\n${time(3)} three\n`;
  expect(read([[log], [log]], at(2)).text).toBe('three\n');
});

test('a connection that was left loses the line under way, and the next may begin anywhere behind it', () => {
  const output: string[] = [];
  const lines = createTimedLines((_, chunk) => output.push(chunk.toString()));
  lines.begin();
  lines.push(Buffer.from(`${time(1)} one\n${time(2)} tw`));
  lines.leave();
  lines.begin();
  lines.push(Buffer.from(`${time(1)} one\n${time(4)} four\n`));
  expect(output).toEqual(['one\n', 'tw', 'four\n']);
});
