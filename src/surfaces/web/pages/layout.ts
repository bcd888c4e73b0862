import { createHash } from 'node:crypto';
import { type Html, html } from '../html.ts';
import { styleSheet } from './style.ts';

/** A finished page: the document and the Content-Security-Policy it was made for. */
export type Page = { readonly document: string; readonly contentSecurityPolicy: string };

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const styleSource = hashOf(styleSheet);

/**
 * Scripts and styles are allowed by hash; nothing is loaded. `formTarget` is where a form's redirects may end besides
 * our own origin, because Chromium applies form-action to the whole chain (contract 10.11).
 */
export function policyFor(options: { formTarget?: string | null; script?: string }): string {
  const script = options.script === undefined ? emptyScript : hashOf(options.script);
  const target = options.formTarget ? ` ${options.formTarget}` : '';
  return (
    `default-src 'none'; style-src ${styleSource}; script-src ${script}; form-action 'self'${target}; ` +
    `base-uri 'none'; frame-ancestors 'none'`
  );
}

/** The hash of an empty script: a place where oidc-provider may add the hash of its auto-submitting page. */
const emptyScript = hashOf('');

export function page(options: {
  title: string;
  body: Html;
  formTarget?: string | null;
  script?: string;
  /** A page of Postern that a browser without scripts opens immediately. */
  movesOnTo?: string;
}): Page {
  const script = options.script === undefined ? null : { html: `<script>${options.script}</script>` };
  const refresh =
    options.movesOnTo === undefined
      ? null
      : html`<noscript><meta http-equiv="refresh" content="0;url=${options.movesOnTo}"></noscript>
`;
  // The style sheet is ours and constant; escaping would change its hash.
  const style = { html: `<style>${styleSheet}</style>` };
  const { html: document } = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="robots" content="noindex">
${refresh}<title>${options.title} · Postern</title>
${style}
</head>
<body>
<main>
<div class="brand">${mark}<span>Postern</span></div>
${options.body}
</main>
<footer>Keys people can trust.</footer>
${script}
</body>
</html>`;
  return { document, contentSecurityPolicy: policyFor(options) };
}

const mark = html`<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" aria-hidden="true"><path d="M4 21V11a8 8 0 0 1 16 0v10M2.5 21h19M8.5 21v-9.5a3.5 3.5 0 0 1 7 0V21" stroke-linecap="round" stroke-linejoin="round"/><circle cx="13.4" cy="15.6" r=".9" fill="currentColor" stroke="none"/></svg>`;

/** Shown once, above the form, and announced by screen readers. */
export function problemBox(problem: string | undefined): Html | null {
  return problem === undefined ? null : html`<p class="problem" role="alert">${problem}</p>`;
}
