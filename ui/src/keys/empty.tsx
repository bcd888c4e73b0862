import { Anchor, Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { KeyIcon } from '../shell/icons.tsx';
import { Empty, NoMatch } from '../lists/empty.tsx';
import { searchVerb } from '../lists/search-text.ts';
import type { KeySearch } from './key-search.ts';

const steps = [
  {
    do: 'Say what it is for.',
    why: 'Use one key for each script, so that you can revoke it for that script alone.',
  },
  { do: 'Limit what it may do.', why: 'Only the scopes and repositories the script needs, and an expiry.' },
  { do: 'Store it at once.', why: 'Its value is shown only once; Postern keeps only a digest.' },
];

/** Explains keys while there are none. */
export function FirstKey({ onShowAll }: { onShowAll: () => void }) {
  return (
    <Empty picture={<KeyIcon size={28} />} title="No active keys" steps={steps}>
      <Button component={Link} to="/settings/keys/new">
        Create a key
      </Button>
      <Anchor component="button" type="button" size="sm" onClick={onShowAll}>
        Show expired and revoked keys
      </Anchor>
    </Empty>
  );
}

export function NoKeyMatches({ shown, onClear }: { shown: KeySearch; onClear: () => void }) {
  const { state = 'active', search, scope, repository, unused } = shown;
  const what = state === 'all' ? 'keys' : `${state} keys`;
  const filters = [
    ...(scope === undefined ? [] : [`may do ${scope}`]),
    ...(repository === undefined ? [] : [`reach ${repository}`]),
    ...(unused === true ? ['were unused for 30 days'] : []),
  ];
  return (
    <NoMatch clear="Show active keys" onClear={onClear}>
      There are no {what}
      {search !== undefined && (
        <>
          {' '}
          whose name {searchVerb(search)} “<bdi>{search}</bdi>”, or with this id
        </>
      )}
      {filters.length > 0 && `${search === undefined ? '' : ','} that ${filters.join(' and ')}`}.
    </NoMatch>
  );
}
