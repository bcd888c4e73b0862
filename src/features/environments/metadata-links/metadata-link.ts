import {
  type EnvironmentField,
  environmentFields,
  filled,
  readTemplate,
} from '../configuration-file/references.ts';

/** Links that administrators define once and that every Environment shows, each with its own values. */
export type MetadataLink = {
  readonly id: string;
  readonly text: string;
  readonly icon: LinkIcon;
  /** A template, such as `https://git.example.com/tree/${environment.branch}`. */
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

/** The values of one Environment that a link can contain. */
type LinkValues = Readonly<Record<EnvironmentField, string>>;

const allowed = `A link can contain \${environment.{${environmentFields.join(',')}}}, and $\${ for the characters themselves.`;

// The host is written out, so that a branch with a chosen name cannot lead people elsewhere.
const withWrittenHost = /^https?:\/\/[^/?#\\@\s]+(?:[/?#]|$)/i;

/** Why a text cannot be a link, as a sentence or as what follows “This …”; null when it can. */
export function mistakeInLink(link: string): string | null {
  const { template, mistakes } = readTemplate(link);
  const [mistake] = mistakes;
  if (mistake !== undefined) return `${mistake.message} ${allowed}`;
  if (template.some((piece) => typeof piece !== 'string' && piece.kind === 'service'))
    return `An Environment need not have the services that the link names. ${allowed}`;
  // No host has an @.
  const sample = filledLink(link, () => '@');
  if (withWrittenHost.test(sample) && URL.canParse(sample)) return null;
  return 'must be an http or https address without a user name, and contain references only after its host';
}

/** What one Environment shows. Values are URL-encoded: none of them adds a path, a query or a host. */
export function renderLinks(
  links: readonly MetadataLink[],
  values: LinkValues,
): { readonly text: string; readonly icon: LinkIcon; readonly url: string }[] {
  return links.map(({ text, icon, link }) => {
    const url = new URL(filledLink(link, (field) => encodeURIComponent(values[field])));
    return { text, icon, url: url.href };
  });
}

function filledLink(link: string, valueOf: (field: EnvironmentField) => string): string {
  return filled(readTemplate(link).template, (reference) =>
    reference.kind === 'environment' ? valueOf(reference.field) : '',
  );
}
