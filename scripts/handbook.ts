import { join } from 'node:path';
import markdown from '@metalsmith/markdown';
import Metalsmith from 'metalsmith';

/** Builds a static site from docs/. The tour publishes it; anyone can publish it next to the service. */
const root = join(import.meta.dirname, '..');

export async function buildHandbook(destination: string): Promise<number> {
  const files = await new Promise<object>((resolve, reject) => {
    Metalsmith(root)
      .source('docs')
      .destination(destination)
      .clean(true)
      .metadata({ title: 'Postern' })
      .use(markdown())
      .use(asPages)
      .build((error: Error | null, built: object) => (error ? reject(error) : resolve(built)));
  });
  return Object.keys(files).length;
}

type Files = Record<string, { contents: Buffer }>;

/** Gives every page the same head and style, links to pages instead of their sources, and an index page. */
function asPages(files: Files): void {
  const pages = Object.keys(files).filter((path) => path.endsWith('.html'));
  for (const path of pages) {
    const file = files[path];
    if (file === undefined) continue;
    const body = file.contents.toString().replaceAll(/(href="[^":]*?)\.md(#[^"]*)?"/g, '$1.html$2"');
    file.contents = pageOf(path, /<h1[^>]*>(.*?)<\/h1>/s.exec(body)?.[1] ?? path, body);
  }
  const list = pages.sort().map((path) => `<li><a href="${path}">${path.replace('.html', '')}</a></li>`);
  files['index.html'] = {
    contents: pageOf('index.html', 'Postern', `<h1>Postern</h1>\n<ul>\n${list.join('\n')}\n</ul>`),
  };
  files['404.html'] = {
    contents: pageOf(
      '404.html',
      'Not here',
      '<h1>There is no such page</h1><p><a href="/">All pages</a></p>',
    ),
  };
  files['assets/style.css'] = { contents: Buffer.from(style) };
}

function pageOf(path: string, title: string, body: string): Buffer {
  const up = '../'.repeat(path.split('/').length - 1);
  return Buffer.from(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title.replaceAll(/<[^>]+>/g, '')}</title>
<link rel="stylesheet" href="${up}assets/style.css">
<nav><a href="${up === '' ? './' : up}">Postern</a></nav>
<main>
${body}
</main>
</html>
`);
}

const style = `:root { color-scheme: light dark; font: 17px/1.6 system-ui, sans-serif; }
body { margin: 0 auto; padding: 1.5rem; max-width: 46rem; }
nav { margin-bottom: 2rem; font-weight: 600; }
pre { overflow-x: auto; padding: 1rem; border-radius: 0.5rem; background: color-mix(in srgb, currentColor 8%, transparent); }
table { border-collapse: collapse; display: block; overflow-x: auto; }
td, th { padding: 0.3rem 0.8rem 0.3rem 0; text-align: left; vertical-align: top; }
`;
