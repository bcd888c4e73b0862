import { cpSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The example application of the tests: a front end that Vite builds calls a Node API by its own host. */
export const shopFile = (image: string) => `version: 1
services:
  web:
    build: { image: '${image}', command: node node_modules/vite/bin/vite.js build, directory: web, output: dist }
    static: { spa: true }
    routes: { /api: api }
    requires: [api]
  api:
    build: { image: '${image}', directory: api }
    run: { command: node server.js, port: 8080, health: /api/health }
    exposed: false
`;

/** `words` are on its page, and `stock` is what its API answers. */
export function shopFiles({ words, stock }: { readonly words: string; readonly stock: number }) {
  return {
    'web/index.html': `<!doctype html><title>Shop</title><h1 id="answer">…</h1><script type="module" src="/main.js"></script>`,
    'web/main.js': `import { ask } from './ask.js';
document.querySelector('#answer').textContent = await ask();
`,
    'web/ask.js': `export const ask = async () => '${words}: ' + (await (await fetch('/api/stock')).text());\n`,
    'api/server.js': `const { createServer } = require('node:http');
console.log('the stock is ${stock}');
createServer((request, response) => response.end(request.url === '/api/stock' ? '${stock} left' : 'ok')).listen(process.env.PORT);
`,
  };
}

/** The repository brings its tools, because a test has no registry to install them from. */
export function installVite(to: string): void {
  const installed = join(import.meta.dirname, '../node_modules');
  const copied = new Set<string>();
  const copy = (name: string) => {
    const from = join(installed, name);
    // A package for another platform is not installed.
    if (copied.has(name) || !existsSync(from)) return;
    copied.add(name);
    cpSync(from, join(to, name), { recursive: true, filter: (path) => !path.endsWith('.bin') });
    const { dependencies = {}, optionalDependencies = {} } = JSON.parse(
      readFileSync(join(from, 'package.json'), 'utf8'),
    );
    for (const one of Object.keys({ ...dependencies, ...optionalDependencies })) copy(one);
  };
  copy('vite');
}
