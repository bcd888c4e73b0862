import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { staticPage } from '../openapi/page.ts';
import type { HttpMethod, OpenApi, Operation } from '../openapi/types.ts';
import { errorIndex } from './error-index.ts';
import { filterScript } from './filter.ts';
import { type Html, html } from '../html.ts';
import { introduction } from './introduction.ts';
import { operationSection } from './operation.ts';
import { style } from './style.ts';

/**
 * The API reference at /api/v2/docs: one page, generated once from the OpenAPI document (decision 0005), with one
 * script that filters it (decision 0040). Every error code has an anchor with its name, because error responses link to
 * it.
 */
export function referencePage(document: () => OpenApi): (app: FastifyInstance) => void {
  return staticPage('/api/v2/docs', 'text/html; charset=utf-8', () => renderReference(document()), {
    'content-security-policy': policy,
  });
}

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const policy = `default-src 'none'; style-src ${hashOf(style)}; script-src ${hashOf(filterScript)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

type Entry = { readonly path: string; readonly method: HttpMethod; readonly operation: Operation };
type Group = { readonly tag: string; readonly entries: readonly Entry[] };

export function renderReference(document: OpenApi): string {
  const groups = groupsOf(document);
  const contents = tableOfContents(groups);
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="${document.info.summary}">
<title>${document.info.title} reference</title>
${styleElement}
</head>
<body>
<a class="skip" href="#introduction">Skip to the content</a>
<div class="shell">
<div class="side">
<a class="brand" href="#introduction">${mark}<span>Postern <small>API ${document.info.version}</small></span></a>
<p class="filter" hidden><label for="filter">Filter</label><input id="filter" type="search" autocomplete="off" spellcheck="false" placeholder="sites:write, PUT, usage"><span id="found" role="status"></span></p>
<nav class="toc-wide" aria-label="Contents">${contents}</nav>
<details class="toc-small"><summary>Contents</summary><nav aria-label="Contents">${contents}</nav></details>
</div>
<main>
${introduction(document)}
${groups.map(
  ({
    tag,
    entries,
  }) => html`<details class="group" id="${anchor(tag)}"><summary><h2>${tag}</h2><span>${countOf(entries)}</span></summary>
${entries.map(({ path, method, operation }) => operationSection(document, path, method, operation))}
</details>`,
)}
${errorIndex(document)}
<footer>Generated from the <a href="/api/v2/openapi.json">OpenAPI 3.1 document</a> of this server.</footer>
</main>
</div>
${scriptElement}
</body>
</html>
`.html;
}

// The hash in the policy covers exactly these bytes, so nothing may be escaped or added inside.
const styleElement = { html: `<style>${style}</style>` };
const scriptElement = { html: `<script>${filterScript}</script>` };

const mark = html`<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.9" stroke-linecap="round" aria-hidden="true"><path d="M4 21V11a8 8 0 0 1 16 0v10M2.5 21h19"/><path d="M8.5 21v-9.5a3.5 3.5 0 0 1 7 0V21"/><path d="M13 15.6v1"/></svg>`;

function groupsOf(document: OpenApi): Group[] {
  const entries = Object.entries(document.paths).flatMap(([path, item]) =>
    methods.flatMap((method): Entry[] => {
      const operation = item[method];
      return operation === undefined ? [] : [{ path, method, operation }];
    }),
  );
  return document.tags.map(({ name }) => ({
    tag: name,
    entries: entries.filter(({ operation }) => operation.tags[0] === name),
  }));
}

const methods = ['get', 'post', 'put', 'patch', 'delete'] as const satisfies readonly HttpMethod[];

function tableOfContents(groups: readonly Group[]): Html {
  const first = [
    ['introduction', 'Introduction'],
    ['authentication', 'Authentication'],
    ['scopes', 'Scopes'],
    ['answers', 'Responses'],
    ['rate-limit', 'Rate limit'],
    ['errors', 'Error codes'],
  ] as const;
  return html`<h2>Start here</h2><ul>${first.map(([id, text]) => html`<li><a href="#${id}">${text}</a></li>`)}</ul>
${groups.map(
  ({ tag, entries }) =>
    html`<h2>${tag}</h2><ul>${entries.map(
      ({ method, operation }) =>
        html`<li><a href="#${operation.operationId}">${operation.summary}<span class="tiny ${method}">${method.toUpperCase()}</span></a></li>`,
    )}</ul>`,
)}`;
}

function countOf({ length }: readonly Entry[]): string {
  return `${length} ${length === 1 ? 'operation' : 'operations'}`;
}

function anchor(text: string): string {
  return `group-${text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`;
}
