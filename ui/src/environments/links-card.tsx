import { Anchor } from '@mantine/core';
import type { Schemas } from '../api/contract.ts';
import { linkPictures } from './link-icon.tsx';
import shared from '../shell/page.module.css';

/** The metadata links of an Environment or of a deploy. Nothing where administrators defined none. */
export function LinksCard({ links }: { links: Schemas['Environment']['links'] }) {
  if (links.length === 0) return null;
  return (
    <section className={shared['roomy']} aria-labelledby="links">
      <h2 id="links">Links</h2>
      <ul className={shared['links']}>
        {links.map(({ text, icon, url }) => {
          const Picture = linkPictures[icon];
          return (
            <li key={`${text} ${url}`}>
              <Picture size={16} />
              <Anchor href={url} target="_blank" rel="noreferrer" inherit>
                <bdi>{text}</bdi>
              </Anchor>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
