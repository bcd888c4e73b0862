import { useNavigate } from '@tanstack/react-router';
import { carryTo } from '../upload/carried.ts';
import { DropArea } from '../upload/drop-area.tsx';

/** A drop on any part of a site's page is for that site. */
export function DropToPublish({ siteId }: { siteId: string }) {
  const navigate = useNavigate();
  return (
    <DropArea
      says="Drop it to publish a new version"
      onPicked={(picked) => {
        carryTo(picked);
        void navigate({ to: '/sites/$id', params: { id: siteId }, search: { tab: 'publish' } });
      }}
    />
  );
}
