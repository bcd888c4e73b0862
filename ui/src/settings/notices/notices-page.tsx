import { Button, SegmentedControl } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import { queryClient, unreadNotices } from '../../api/queries.ts';
import { announce } from '../../shell/announce.tsx';
import { BellIcon } from '../../shell/icons.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import { Empty, NoMatch } from '../../lists/empty.tsx';
import { PageHead, Tools } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import { myNotices } from '../queries.ts';
import { NoticeList } from './notice-list.tsx';
import { noticeSearch } from './notice-search.ts';
import { focusIfLost } from '../../shell/focus.ts';

const route = getRouteApi('/settings/notices');
const pageSize = 20;

/** Notices about the user's keys, sites and Environments, such as expiry, exposure and failed deploys. */
export function NoticesPage() {
  const { show = 'unread', page = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const isAll = show === 'all';
  const notices = useQuery(myNotices({ page, limit: pageSize, ...(isAll ? {} : { unread: true }) }));
  const { data: unread = 0 } = useQuery(unreadNotices);
  const { read, error, isBusy } = useReading();
  const heading = useRef<HTMLHeadingElement>(null);
  const now = useNow();
  const items = notices.data?.data ?? [];
  const unreadHere = items.filter(({ readAt }) => readAt === null).map(({ id }) => id);
  const go = (next: { show?: 'all'; page?: number }) =>
    void navigate({ search: noticeSearch(next), replace: true });
  const readAndStay = (ids: readonly string[]) =>
    void read(ids).then((isDone) => {
      // The pressed button may have disappeared with its notice.
      if (isDone) focusIfLost(heading.current);
    });

  return (
    <>
      <PageHead
        title="Notices"
        intro="Expiring keys and sites, exposed keys, keys still used after they expired, failed deploys, and changes to your passkeys."
        heading={heading}
      >
        {unreadHere.length > 1 && (
          <Button variant="default" loading={isBusy} onClick={() => readAndStay(unreadHere)}>
            Mark these {unreadHere.length} as read
          </Button>
        )}
      </PageHead>
      <Tools>
        <SegmentedControl
          aria-label="Show"
          value={show}
          onChange={(value) => go(value === 'all' ? { show: 'all' } : {})}
          data={[
            { value: 'unread', label: unread === 0 ? 'Unread' : `Unread (${unread})` },
            { value: 'all', label: 'All' },
          ]}
        />
      </Tools>
      {error !== undefined && <Problem error={error} />}
      <List
        what="notices"
        found={notices}
        empty={isAll ? <NothingYet /> : <NothingNew onAll={() => go({ show: 'all' })} />}
      >
        {(items) => <NoticeList notices={items} now={now} onRead={(id) => readAndStay([id])} />}
      </List>
    </>
  );
}

function NothingNew({ onAll }: { onAll: () => void }) {
  return (
    <NoMatch clear="Show all notices" onClear={onAll}>
      You’re all caught up.
    </NoMatch>
  );
}

function NothingYet() {
  return (
    <Empty
      picture={<BellIcon size={28} />}
      title="No notices yet"
      steps={[
        {
          do: 'Before a key or a site expires,',
          why: 'you get a notice a week and a day ahead, and when it does.',
        },
        {
          do: 'When a key is exposed,',
          why: 'such as in a web address, you get a notice at once: replace it.',
        },
        {
          do: 'When something uses an inactive key,',
          why: 'the notice names the key, so that you can fix the script.',
        },
      ]}
    >
      {null}
    </Empty>
  );
}

/** Marks one after the other. Earlier ones stay marked if a later one fails. */
function useReading() {
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);

  async function read(ids: readonly string[]): Promise<boolean> {
    setBusy(true);
    setError(undefined);
    try {
      for (const id of ids) await unwrap(api.POST('/me/notices/{id}/read', { params: { path: { id } } }));
      announce(ids.length === 1 ? 'Marked as read.' : `${ids.length} notices are marked as read.`);
      return true;
    } catch (failure) {
      setError(failure);
      return false;
    } finally {
      await queryClient.invalidateQueries({ queryKey: ['notices'] });
      setBusy(false);
    }
  }

  return { read, error, isBusy };
}
