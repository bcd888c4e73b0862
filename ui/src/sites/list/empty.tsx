import { GlobeIcon } from '../../shell/icons.tsx';
import { Empty, NoMatch } from '../../lists/empty.tsx';
import { searchVerb } from '../../lists/search-text.ts';
import { Picker } from '../upload/picker.tsx';
import { useCarry } from '../upload/carried.ts';

const steps = [
  { do: 'Drop a folder here.', why: 'Anywhere on this page; a ZIP, a tar.gz or one HTML page works, too.' },
  { do: 'Say who may see it.', why: 'Only you, unless you choose everyone.' },
  { do: 'Share its address.', why: 'Publish again whenever you like: only what changed is sent.' },
];

/** Explains sites while there are none. */
export function FirstSite() {
  const carry = useCarry();
  return (
    <Empty picture={<GlobeIcon size={28} />} title="No sites yet" steps={steps}>
      <Picker onPicked={carry} />
    </Empty>
  );
}

export function NoSiteMatches({ search, onClear }: { search: string; onClear: () => void }) {
  return (
    <NoMatch clear="Show my sites" onClear={onClear}>
      There are no such sites
      {search !== '' && (
        <>
          {' '}
          whose name {searchVerb(search)} “<bdi>{search}</bdi>”, or with this id or address
        </>
      )}
      .
    </NoMatch>
  );
}
