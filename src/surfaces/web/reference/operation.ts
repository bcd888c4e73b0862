import { type ErrorCode, errorRegistry, statusOf } from '../../../core/errors.ts';
import { formType } from '../oauth-answers.ts';
import { isAnyRequestsCode } from '../openapi/codes.ts';
import type { Answer, HttpMethod, JsonSchema, OpenApi, Operation, Parameter } from '../openapi/types.ts';
import { curlOf, needsSession, sendsEtag } from './curl.ts';
import { escape, type Html, html } from '../html.ts';
import { inline, json, prose } from './prose.ts';
import { sampleOf } from './sample.ts';
import { asSchema, meaning, resolved, schemaTable, typeOf } from './schema-table.ts';

/** One operation: what it does and who may call it on the left, the call and its response on the right. */
export function operationSection(
  document: OpenApi,
  path: string,
  method: HttpMethod,
  operation: Operation,
): Html {
  const { schemas } = document.components;
  const id = operation.operationId;
  const { content: bodies = {} } = operation.requestBody ?? {};
  const content = bodies['application/json'] ?? bodies[formType];
  const body = content === undefined ? undefined : (content.example ?? sampleOf(content.schema, schemas));
  const [status, success] = successOf(operation);
  const words = [method, path, id, operation.summary, operation.tags[0], operation['x-postern-scope']]
    .filter((word) => word !== undefined)
    .join(' ')
    .toLowerCase();
  return html`<article class="operation" id="${id}" data-words="${words}">
<div>
<h3><a href="#${id}">${operation.summary}</a></h3>
<p class="call"><span class="badge ${method}">${method.toUpperCase()}</span><code>${pathText(path)}</code></p>
${lead(operation)}
${access(operation)}
${parameters('Path', 'path', operation, document)}
${parameters('Query', 'query', operation, document)}
${parameters('Headers', 'header', operation, document)}
${content !== undefined && html`<h4>Body</h4>${schemaTable(content.schema, schemas, `Body of ${id}`)}`}
${answerFields(document, status, success, id)}
${refusals(operation)}
</div>
<div class="panels">
<div class="panel"><h4><span>Request</span><span>curl</span></h4><pre>${curlOf(document, path, method, operation, body)}</pre>${sampleNotes(operation)}</div>
${answerPanel(document, status, success)}
</div>
</article>`;
}

function pathText(path: string): Html {
  return { html: escape(path).replaceAll(/\{\w+\}/g, '<wbr><i>$&</i>') };
}

/** The description without the sentence about callers, which has a separate box. */
function lead(operation: Operation): Html | undefined {
  const text = operation.description.split('**Who may call it:**')[0]?.trim() ?? '';
  return text === '' ? undefined : prose(text);
}

function access(operation: Operation): Html {
  const words = /\*\*Who may call it:\*\* (.*)$/s.exec(operation.description)?.[1] ?? '';
  const [callers, ...needs] = words.split(/(?<=\.) /);
  const scope = operation['x-postern-scope'];
  return html`<dl class="access"><dt>Callers</dt><dd>${inline([callers, ...needs].join(' '))}</dd>
${scope !== undefined && html`<dt>Scope</dt><dd><a href="#scopes"><code>${scope}</code></a></dd>`}
${limits(operation)}</dl>`;
}

function limits(operation: Operation): Html | false {
  const budgets = [
    operation['x-postern-limited'] && 'rate limit of a key’s owner',
    operation['x-postern-changes-limited'] && 'changes of a person',
  ].filter((budget) => budget !== false);
  return (
    budgets.length > 0 &&
    html`<dt>Limit</dt><dd>Counts toward the <a href="#rate-limit">${budgets.join(', and the ')}</a>.</dd>`
  );
}

function parameters(
  title: string,
  where: Parameter['in'],
  operation: Operation,
  document: OpenApi,
): Html | undefined {
  const list = (operation.parameters ?? []).filter((one) => one.in === where);
  if (list.length === 0) return undefined;
  const { schemas } = document.components;
  return html`<h4>${title}</h4><div class="scroll"><table class="stack"><caption>${title} parameters of ${operation.operationId}</caption>
<thead><tr><th scope="col">Name</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead>
<tbody>${list.map(
    ({ name, required, schema, description }) =>
      html`<tr><td><code class="field">${name}</code>${
        required && html` <span class="required">required</span>`
      }</td><td class="type">${typeOf(schema, schemas)}</td><td>${meaning(
        description === undefined ? schema : { ...schema, description },
        schemas,
      )}</td></tr>`,
  )}</tbody></table></div>`;
}

function successOf(operation: Operation): [string, Answer | undefined] {
  const status = Object.keys(operation.responses).find((one) => one.startsWith('2')) ?? '200';
  return [status, operation.responses[status]];
}

function dataOf(answer: Answer | undefined): JsonSchema | undefined {
  const schema = answer?.content?.['application/json']?.schema;
  return schema === undefined ? undefined : asSchema(schema.properties?.['data']);
}

function answerFields(document: OpenApi, status: string, answer: Answer | undefined, id: string): Html {
  const data = dataOf(answer);
  const { schemas } = document.components;
  const whole = answer?.content?.['application/json']?.schema;
  if (data === undefined && whole !== undefined && resolved(whole, schemas).properties !== undefined)
    return html`<h4>Response ${status}</h4>
<details><summary>Fields</summary>${schemaTable(whole, schemas, `Response of ${id}`)}</details>`;
  if (data === undefined) {
    const types = Object.keys(answer?.content ?? {}).map((type) => html` <code>${type}</code>`);
    if (types.length === 0) return html`<h4>Response ${status}</h4><p>No body.</p>`;
    return html`<h4>Response ${status}</h4><p>A file:${types}.</p>`;
  }
  const description = resolved(data, schemas).description;
  return html`<h4>Response ${status}</h4>${description !== undefined && prose(description)}
<details><summary>Fields of <code>data</code></summary>${schemaTable(data, schemas, `Response of ${id}`)}</details>`;
}

/** Explains where the sample's own variables come from. */
function sampleNotes(operation: Operation): Html {
  return html`${
    needsSession(operation) &&
    html`<p class="note"><code>jar</code> holds the session of a person: <a href="#session-jar">how to get it</a>.</p>`
  }${
    sendsEtag(operation) &&
    html`<p class="note"><code>ETAG</code> holds the <code>ETag</code> header of the response that you read, with its quotes.</p>`
  }`;
}

function answerPanel(document: OpenApi, status: string, answer: Answer | undefined): Html | undefined {
  const content = answer?.content?.['application/json'];
  if (content === undefined) return undefined;
  const body = content.example ?? sampleOf(content.schema, document.components.schemas);
  return html`<div class="panel"><h4><span>Response</span><span class="ok">${status}</span></h4><pre>${json(body)}</pre></div>`;
}

function refusals(operation: Operation): Html {
  const codes = Object.values(operation.responses).flatMap((answer) => answer['x-postern-codes'] ?? []);
  const own = codes.filter((code) => !isAnyRequestsCode(code));
  const common = codes.filter(isAnyRequestsCode);
  return html`<h4>Refusals</h4>${own.length > 0 && codeTable(own, operation.operationId)}
<details><summary>${common.length} more that any request can get</summary>${codeTable(common, operation.operationId)}</details>`;
}

function codeTable(codes: readonly ErrorCode[], id: string): Html {
  return html`<div class="scroll"><table class="codes stack"><caption>Refusals of ${id}</caption>
<thead><tr><th scope="col">Code</th><th scope="col">Status</th><th scope="col">What to do</th></tr></thead>
<tbody>${codes.map(
    (code) =>
      html`<tr><td><a href="#${code}"><code>${code}</code></a></td><td class="status">${statusOf(code)}</td><td>${errorRegistry[code][2]}</td></tr>`,
  )}</tbody></table></div>`;
}
