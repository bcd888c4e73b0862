import { GlobeIcon } from '../app/icons.tsx';
import { Empty } from '../lists/empty.tsx';
import { PageHead } from '../lists/page-head.tsx';

/** An administrator switched all of Sites off. Nothing is lost, and nothing can be done here. */
export function SitesOff({ title }: { title: string }) {
  return (
    <>
      <PageHead title={title} intro="Static websites at addresses of their own." />
      <Empty picture={<GlobeIcon size={28} />} title="Sites are switched off">
        <p className="quiet">
          An administrator has switched Sites off. No site is served and nothing can be published. Every site
          is kept as it is, and is back when Sites are switched on again.
        </p>
      </Empty>
    </>
  );
}
