import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMap, isScalar, parseDocument, type YAMLMap } from 'yaml';

/** Generates the table of chart/README.md from the comments `# -- …` in chart/values.yaml. */
const folder = join(import.meta.dirname, '../chart');
export const chartReadme = 'chart/README.md';
const [begin, end] = ['<!-- values: npm run docs -->', '<!-- end of values -->'];

/** Helm reads only files inside the chart, so the chart has copies of these: source, then copy. */
export const chartCopies = [
  ['deploy/prometheus/alerts.yaml', 'chart/files/alerts.yaml'],
  ['deploy/grafana/postern.json', 'chart/files/dashboard.json'],
] as const;

/** The expected text of chart/README.md. @throws an error that names values without a description */
export function renderChartReadme(): string {
  const text = readFileSync(join(folder, 'README.md'), 'utf8');
  const [before, after] = [text.indexOf(begin), text.indexOf(end)];
  if (before < 0 || after < 0) throw new Error(`${chartReadme} has no place for the table of values.`);
  return `${text.slice(0, before + begin.length)}\n\n${valuesTable()}\n\n${text.slice(after)}`;
}

function valuesTable(): string {
  const { contents } = parseDocument(readFileSync(join(folder, 'values.yaml'), 'utf8'));
  if (!isMap(contents)) throw new Error('chart/values.yaml is not a map.');
  const rows = rowsOf(contents, '');
  const silent = rows.filter(({ meaning }) => meaning === '').map(({ name }) => name);
  if (silent.length > 0) throw new Error(`chart/values.yaml says nothing about ${silent.join(', ')}.`);
  const lines = rows.map(({ name, meaning, value }) => `| \`${name}\` | ${meaning} | ${value} |`);
  return ['| Value | Meaning | Default |', '|---|---|---|', ...lines].join('\n');
}

type Row = { readonly name: string; readonly meaning: string; readonly value: string };

/** A value with a comment becomes a row; one without is a group of other values. */
function rowsOf(map: YAMLMap, path: string): readonly Row[] {
  return map.items.flatMap(({ key, value }, index) => {
    if (!isScalar(key)) throw new Error('A name in chart/values.yaml is not a word.');
    const name = `${path}${String(key.value)}`;
    // The parser attaches the comment above the first entry of a map to the map itself.
    const above = `${key.commentBefore ?? ''}\n${index === 0 ? (map.commentBefore ?? '') : ''}`;
    const meaning = /^ -- (.*)$/m.exec(above)?.[1] ?? '';
    if (meaning === '' && isMap(value) && value.items.length > 0) return rowsOf(value, `${name}.`);
    const shown = isScalar(value) ? value.value : JSON.stringify(value);
    return [{ name, meaning, value: shown === '' ? '–' : `\`${String(shown)}\`` }];
  });
}
