import { useQuery } from '@tanstack/react-query';
import { Link, useLocation } from '@tanstack/react-router';
import { unreadNotices, waitingApprovals, whoAmI } from '../api/queries.ts';
import { isAt, type Place, useAreas } from './areas.ts';
import { BellIcon, BookIcon } from './icons.tsx';
import styles from './navigation.module.css';

type NavigationProps = {
  /** On a small screen: whether the menu is open. Beside the page it always is. */
  readonly isOpen: boolean;
  readonly onGo: () => void;
};

/** The navigation by area: a column beside the page, or a menu above it on small screens. */
export function Navigation({ isOpen, onGo }: NavigationProps) {
  const areas = useAreas();
  return (
    <nav id="areas" className={styles['nav']} aria-label="Areas" data-open={isOpen}>
      {areas.map(({ title, places }) => (
        <div key={title} className={styles['group']}>
          {title !== '' && <h2 className={styles['area']}>{title}</h2>}
          {places.map((place) => (
            <PlaceLink key={place.label} of={place} onGo={onGo} />
          ))}
        </div>
      ))}
      <div className={styles['group']}>
        <a href="/api/v2/docs" className={styles['link']}>
          <BookIcon /> API reference
        </a>
      </div>
    </nav>
  );
}

function PlaceLink({ of: place, onGo }: { of: Place; onGo: () => void }) {
  const { pathname } = useLocation();
  const { to, label, icon: Icon } = place;
  return (
    <Link
      to={to}
      className={styles['link']}
      activeOptions={{ exact: true, includeSearch: false }}
      // The entry of several pages is current on each of them.
      {...(isAt(place, pathname) && { 'aria-current': pathname === to ? 'page' : 'true' })}
      onClick={onGo}
    >
      <Icon /> {label}
      {to === '/settings/agents' && <Waiting />}
    </Link>
  );
}

/** Links to all pages of one subject, shown above each of them. */
export function Parts() {
  const { pathname } = useLocation();
  const place = useAreas()
    .flatMap(({ places }) => places)
    .find(({ parts = [] }) => parts.some(({ to }) => to === pathname));
  if (place === undefined) return null;
  return (
    <nav className={styles['parts']} aria-label={place.label}>
      {place.parts?.map(({ to, label }) => (
        <Link
          key={to}
          to={to}
          className={styles['part']}
          activeOptions={{ exact: true, includeSearch: false }}
        >
          {label}
        </Link>
      ))}
    </nav>
  );
}

/** The link to the notices in the bar, with the number of unread ones. */
export function NoticesLink() {
  const { data: count = 0 } = useQuery(unreadNotices);
  return (
    <Link to="/settings/notices" className={styles['notices']}>
      <BellIcon size={20} />
      <span className="unseen">Notices</span>
      <Count of={count} words="unread" />
    </Link>
  );
}

/** Without a role, the server refuses the query. */
function Waiting() {
  const { data: me } = useQuery(whoAmI);
  const { data } = useQuery({
    ...waitingApprovals,
    enabled: (me?.roles?.length ?? 0) > 0,
  });
  return <Count of={data?.approvals.length ?? 0} words="waiting for your approval" />;
}

function Count({ of: count, words }: { of: number; words: string }) {
  if (count === 0) return null;
  return (
    <span className={styles['count']}>
      {count > 99 ? '99+' : count}
      <span className="unseen"> {words}</span>
    </span>
  );
}
