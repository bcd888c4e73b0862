import {
  type EnvironmentField,
  environmentFields,
  filled,
  readTemplate,
  type Reference,
} from '../../configuration-file/configuration-file.ts';

/** A link that administrators define once and that every Environment shows with its own values. */
export type MetadataLink = {
  readonly id: string;
  readonly text: string;
  readonly icon: LinkIcon;
  /** A template, such as `https://git.example.com/${environment.repository}/tree/${environment.branch}`. */
  readonly link: string;
};

export const linkIcons = [
  'book',
  'branch',
  'bug',
  'chart',
  'chat',
  'database',
  'file',
  'gauge',
  'link',
  'shield',
  'terminal',
  'window',
] as const;
type LinkIcon = (typeof linkIcons)[number];

/** Values of one Environment that a link can contain. `services`: name → URL, or null for a service without a URL. */
type LinkValues = Readonly<Record<EnvironmentField, string>> & {
  readonly services: ReadonlyMap<string, string | null>;
};

const allowed = `A link can contain \${environment.{${environmentFields.join(',')}}}, \${services.<name>.url}, and $\${ for the characters themselves.`;

// The host must be literal, so that the name of a branch cannot lead people elsewhere.
const withWrittenHost = /^https?:\/\/[^/?#\\@\s]+(?:[/?#]|$)/i;

/** Why a text cannot be a link, as a sentence or as the rest of a sentence after “This …”. Null: it can. */
export function mistakeInLink(link: string): string | null {
  const { template, mistakes } = readTemplate(link);
  const [mistake] = mistakes;
  if (mistake !== undefined) return `${mistake.message} ${allowed}`;
  if (
    template.some((piece) => typeof piece !== 'string' && piece.kind === 'service' && piece.field !== 'url')
  )
    return `Browsers do not reach the host and the port of a service, which are internal. ${allowed}`;
  // No host contains an @.
  const sample = filled(template, () => '@');
  if (withWrittenHost.test(sample) && URL.canParse(sample)) return null;
  return 'must be an http or https address without a user name, and contain references only after its host';
}

/** Encodes a value. The one slash in the name of a repository stays, because URLs of git servers contain it. */
function encoded(reference: Reference, value: string): string {
  const text = encodeURIComponent(value);
  const isRepository = reference.kind === 'environment' && reference.field === 'repository';
  return isRepository ? text.replace('%2F', '/') : text;
}

/**
 * Links of one Environment. Values are URL-encoded, so that none adds a query or a host. Links to services that the
 * Environment does not have, or that have no URL, are left out.
 */
export function renderLinks(
  links: readonly MetadataLink[],
  values: LinkValues,
): { readonly text: string; readonly icon: LinkIcon; readonly url: string }[] {
  const valueOf = (reference: Reference) =>
    reference.kind === 'environment'
      ? values[reference.field]
      : (values.services.get(reference.service) ?? null);
  return links.flatMap(({ text, icon, link }) => {
    const { template } = readTemplate(link);
    if (template.some((piece) => typeof piece !== 'string' && valueOf(piece) === null)) return [];
    const url = new URL(filled(template, (reference) => encoded(reference, valueOf(reference) ?? '')));
    return [{ text, icon, url: url.href }];
  });
}
