import { didYouMean } from './nearest.ts';

/** A value that a variable takes from the Environment: `${services.api.url}`, `${environment.branch}`. */
export type Reference =
  | { readonly kind: 'service'; readonly service: string; readonly field: ServiceField }
  | { readonly kind: 'environment'; readonly field: EnvironmentField };

const serviceFields = ['host', 'port', 'url'] as const;
export type ServiceField = (typeof serviceFields)[number];

export const environmentFields = ['id', 'name', 'repository', 'branch', 'sha', 'url'] as const;
export type EnvironmentField = (typeof environmentFields)[number];

/** The parts of a variable's text; `$${` stands for a literal `${`. */
export type Template = readonly (string | Reference)[];

type Mistake = { readonly message: string; readonly fix: string };

/** Reads the references in the text of a variable. A reference to a value that does not exist is a mistake, not an empty text. */
export function readTemplate(text: string): {
  readonly template: Template;
  readonly mistakes: readonly Mistake[];
} {
  const template: (string | Reference)[] = [];
  const mistakes: Mistake[] = [];
  let end = 0;
  for (const match of text.matchAll(/\$\$\{|\$\{([^}]*)(\}?)/g)) {
    const [whole, name, closing] = match;
    template.push(text.slice(end, match.index));
    end = match.index + whole.length;
    if (name === undefined) template.push('${');
    else if (closing === '')
      mistakes.push({ message: 'A ${ has no closing }.', fix: `Add the }. ${literal}` });
    else {
      const found = referenceOf(name);
      if ('message' in found) mistakes.push(found);
      else template.push(found);
    }
  }
  template.push(text.slice(end));
  return { template: joined(template), mistakes };
}

const literal = 'For the characters themselves, write $${.';
const forms = `Use services.<name>.{${serviceFields.join(',')}} or environment.{${environmentFields.join(',')}}.`;

function referenceOf(name: string): Reference | Mistake {
  const [top, ...rest] = name.split('.');
  const [middle = '', last = ''] = rest;
  if (top === 'environment' && rest.length === 1) {
    const field = environmentFields.find((one) => one === middle);
    if (field !== undefined) return { kind: 'environment', field };
    return { message: `\${${name}} does not exist.`, fix: didYouMean(middle, environmentFields) ?? forms };
  }
  if (top === 'services' && rest.length === 2) {
    const field = serviceFields.find((one) => one === last);
    if (field !== undefined) return { kind: 'service', service: middle, field };
    return { message: `\${${name}} does not exist.`, fix: didYouMean(last, serviceFields) ?? forms };
  }
  return { message: `\${${name}} does not exist.`, fix: `${forms} ${literal}` };
}

/** The text, with each reference replaced by its value. */
export function filled(template: Template, valueOf: (reference: Reference) => string): string {
  return template.map((piece) => (typeof piece === 'string' ? piece : valueOf(piece))).join('');
}

/** Joins neighbouring texts and drops empty ones. */
export function joined(template: Template): Template {
  const pieces: (string | Reference)[] = [];
  for (const piece of template) {
    const last = pieces.at(-1);
    if (typeof piece === 'string' && typeof last === 'string') pieces[pieces.length - 1] = last + piece;
    else if (piece !== '') pieces.push(piece);
  }
  return pieces;
}
