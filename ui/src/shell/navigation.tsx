import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { unreadNotices, waitingApprovals, whoAmI } from '../api/queries.ts';
import { type Place, useAreas } from './areas.ts';
import { BookIcon } from './icons.tsx';
import styles from './navigation.module.css';

type NavigationProps = {
  /** On a small screen: whether the menu is open. Beside the page it always is. */
  readonly isOpen: boolean;
  readonly onGo: () => void;
};

/** Where one can go, by area: a column beside the page, and a menu above it where there is no room for one. */
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

function PlaceLink({
  of: { to, label, icon: Icon, isExact = false },
  onGo,
}: {
  of: Place;
  onGo: () => void;
}) {
  return (
    <Link
      to={to}
      className={styles['link']}
      activeOptions={{ includeSearch: false, exact: isExact }}
      onClick={onGo}
    >
      <Icon /> {label}
      {to === '/settings/notices' && <Unread />}
      {to === '/settings/agents' && <Waiting />}
    </Link>
  );
}

function Unread() {
  const { data: count = 0 } = useQuery(unreadNotices);
  return <Count of={count} words="unread" />;
}

/** Without a role nobody may ask. */
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
