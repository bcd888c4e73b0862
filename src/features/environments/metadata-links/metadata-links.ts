import type { AuditContext } from '../../../core/caller.ts';
import { AppError } from '../../../core/errors.ts';
import { newId, type Random } from '../../../core/ids.ts';
import type { Tx } from '../../../platform/database/database.ts';
import type { AuditWriter } from '../../audit/audit.ts';
import type { LinkStore } from './link-store.ts';
import type { MetadataLink } from './metadata-link.ts';

export const maxLinks = 50;

type LinkInput = Omit<MetadataLink, 'id'> & Place;
type LinkChange = { readonly [Field in keyof LinkInput]?: LinkInput[Field] | undefined };
/** Position from 1. A position beyond the last means the end. */
type Place = { readonly position?: number | undefined };

/** Each changing verb returns every link in the new order. */
export type MetadataLinks = {
  list(): Promise<MetadataLink[]>;
  /** @throws AppError quota_exceeded */
  add(auditContext: AuditContext, input: LinkInput): Promise<MetadataLink[]>;
  /** @throws AppError not_found; so does remove */
  change(auditContext: AuditContext, id: string, change: LinkChange): Promise<MetadataLink[]>;
  remove(auditContext: AuditContext, id: string): Promise<void>;
};

export function createMetadataLinks(deps: {
  readonly read: { metadataLinks: Pick<LinkStore, 'list'> };
  readonly tx: Tx<{ metadataLinks: LinkStore; audit: AuditWriter }>;
  readonly random: Random;
}): MetadataLinks {
  const { read, tx, random } = deps;
  return {
    list: read.metadataLinks.list,
    add: (auditContext, { position, ...input }) =>
      tx(async ({ metadataLinks, audit }) => {
        const before = await metadataLinks.hold();
        if (before.length >= maxLinks)
          throw new AppError('quota_exceeded', {
            message: `There are ${maxLinks} metadata links, which is the maximum.`,
            hint: 'Delete a link that is no longer needed.',
          });
        const link = { id: newId(random, 'mdl'), ...input };
        const after = placed(before, link, position ?? maxLinks);
        await metadataLinks.insert(link);
        await metadataLinks.place(after.map(({ id }) => id));
        await audit.append(eventOf(auditContext, 'link_added', { after: factsOf(link.id, after) }));
        return after;
      }),
    change: (auditContext, id, { position, ...change }) =>
      tx(async ({ metadataLinks, audit }) => {
        const before = await metadataLinks.hold();
        const old = linkIn(before, id);
        const link = {
          id,
          text: change.text ?? old.text,
          icon: change.icon ?? old.icon,
          link: change.link ?? old.link,
        };
        const after = placed(before, link, position ?? before.indexOf(old) + 1);
        await metadataLinks.update(link);
        await metadataLinks.place(after.map((one) => one.id));
        const details = { before: factsOf(id, before), after: factsOf(id, after) };
        await audit.append(eventOf(auditContext, 'link_changed', details));
        return after;
      }),
    remove: (auditContext, id) =>
      tx(async ({ metadataLinks, audit }) => {
        const before = await metadataLinks.hold();
        linkIn(before, id);
        await metadataLinks.remove(id);
        await metadataLinks.place(before.filter((one) => one.id !== id).map((one) => one.id));
        await audit.append(eventOf(auditContext, 'link_removed', { before: factsOf(id, before) }));
      }),
  };
}

function linkIn(links: readonly MetadataLink[], id: string): MetadataLink {
  const found = links.find((one) => one.id === id);
  if (found === undefined)
    throw new AppError('not_found', {
      message: 'There is no such metadata link.',
      hint: 'List the metadata links to see their ids.',
    });
  return found;
}

function placed(links: readonly MetadataLink[], link: MetadataLink, position: number): MetadataLink[] {
  const others = links.filter(({ id }) => id !== link.id);
  return others.toSpliced(position - 1, 0, link);
}

function factsOf(linkId: string, links: readonly MetadataLink[]) {
  const { text, icon, link } = linkIn(links, linkId);
  return { id: linkId, text, icon, link, position: links.findIndex(({ id }) => id === linkId) + 1 };
}

function eventOf(
  auditContext: AuditContext,
  reason: 'link_added' | 'link_changed' | 'link_removed',
  details: Readonly<Record<string, unknown>>,
) {
  return {
    event: 'config.metadata.changed',
    auditContext,
    target: { kind: 'config', id: 'metadata' },
    outcome: 'success',
    reason,
    details,
  } as const;
}
