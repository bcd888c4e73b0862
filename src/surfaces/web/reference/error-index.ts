import { type ErrorCode, errorCodes, errorRegistry } from '../../../core/errors.ts';
import { isAnyRequestsCode } from '../openapi/codes.ts';
import type { OpenApi } from '../openapi/types.ts';
import { type Html, html } from '../html.ts';

/** Every code of the registry with its anchor: `error.docs` in a response links here. */
export function errorIndex(document: OpenApi): Html {
  const users = usersOf(document);
  const codes = errorCodes.toSorted((a, b) => errorRegistry[a][0] - errorRegistry[b][0]);
  return html`<section class="group" id="errors"><h2>Error codes</h2>
<p>The list is complete: every failure has one of these codes, and its <code>docs</code> field links here.</p>
${codes.map((code) => {
  const [status, message, hint] = errorRegistry[code];
  return html`<article class="code" id="${code}"><h3><a href="#${code}">${code}</a><span class="status">${status}</span></h3>
<p>${message} <span class="quiet">${hint}</span></p>${whereSeen(users.get(code) ?? [], code)}</article>`;
})}
</section>`;
}

/** A code that any request can get needs no list. */
function whereSeen(ids: readonly string[], code: ErrorCode): Html | undefined {
  if (ids.length === 0 || isAnyRequestsCode(code)) return undefined;
  return html`<details><summary>Operations that return ${code}</summary><p>${ids.map(
    (id) => html`<a href="#${id}"><code>${id}</code></a> `,
  )}</p></details>`;
}

function usersOf(document: OpenApi): Map<ErrorCode, string[]> {
  const users = new Map<ErrorCode, string[]>();
  for (const item of Object.values(document.paths)) {
    for (const operation of Object.values(item)) {
      for (const code of Object.values(operation.responses).flatMap(
        (answer) => answer['x-postern-codes'] ?? [],
      )) {
        users.set(code, [...(users.get(code) ?? []), operation.operationId]);
      }
    }
  }
  return users;
}
