import { Anchor, Skeleton, Tabs, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { ApiProblem } from '../../api/client.ts';
import { useIsAdministrator, whoAmI } from '../../api/queries.ts';
import { Problem } from '../../shell/problem.tsx';
import { oneSite, siteActions } from '../queries.ts';
import { ownerWords } from '../site-words.ts';
import { closedBy, SitesClosed } from '../sites-off.tsx';
import { StandingBadge } from '../standing-badge.tsx';
import { VisibilityWord } from '../visibility-word.tsx';
import { Access } from './access.tsx';
import { type DetailTab, detailSearch, detailTabs } from './detail-search.ts';
import shared from '../../shell/page.module.css';
import styles from './detail.module.css';
import { Files } from './files.tsx';
import { NoSuchSite } from './no-such-site.tsx';
import { Overview } from './overview.tsx';
import { Publish } from './publish.tsx';
import { Restore } from './restore.tsx';
import { Settings } from './settings.tsx';
import { Versions } from './versions.tsx';
import { useSitesNow } from '../sites-now.ts';

const route = getRouteApi('/sites/$id');
const labels: Readonly<Record<DetailTab, string>> = {
  overview: 'Overview',
  publish: 'Publish',
  versions: 'Versions',
  files: 'Files',
  access: 'Access',
  settings: 'Settings',
};

/** One site: its address, its versions, who may see it, and its owner's actions. */
export function SitePage() {
  const { id } = route.useParams();
  const shown = route.useSearch();
  const navigate = route.useNavigate();
  const site = useQuery(oneSite(id));
  const actions = useQuery(siteActions(id));
  const me = useQuery(whoAmI);
  const isAdministrator = useIsAdministrator();
  const now = useSitesNow();
  const error = site.error ?? actions.error;
  const closed = closedBy(error);
  if (closed !== null) return <SitesClosed title="Site" why={closed} />;
  if (error instanceof ApiProblem && error.status === 404) return <NoSuchSite id={id} />;
  if (error !== null)
    return <Problem error={error} onRetry={() => void Promise.all([site.refetch(), actions.refetch()])} />;
  if (site.data === undefined || actions.data === undefined)
    return <Skeleton height={420} radius="lg" aria-label="Loading" role="status" />;

  const { tab = 'overview' } = shown;
  const facts = { site: site.data, actions: actions.data, now };
  const show = (next: Record<string, unknown>) =>
    void navigate({ search: detailSearch({ tab, ...next }), replace: true });
  return (
    <>
      <title>{`${tab === 'overview' ? '' : `${labels[tab]} · `}${site.data.name} · Postern`}</title>
      <Anchor component={Link} to="/sites" size="sm">
        ← Sites
      </Anchor>
      <div className={styles['head']}>
        <Title order={1} size="h2" className={styles['title']}>
          <bdi>{site.data.name}</bdi>
        </Title>
        <StandingBadge of={site.data} now={now} />
        <span className={styles['facts']}>
          <VisibilityWord of={site.data.visibility} />
          <span>
            Owner: <bdi>{ownerWords(site.data, me.data?.principal.id ?? undefined)}</bdi>
          </span>
        </span>
      </div>
      {site.data.status === 'deleted' && <Restore {...facts} />}
      <Tabs
        value={tab}
        keepMounted={false}
        onChange={(value) => void navigate({ search: detailSearch({ tab: value }) })}
      >
        <Tabs.List className={shared['tabs']} aria-label="Parts of the site">
          {detailTabs.map((one) => (
            <Tabs.Tab key={one} value={one}>
              {labels[one]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="overview">
          <Overview {...facts} />
        </Tabs.Panel>
        <Tabs.Panel value="publish">
          <Publish {...facts} />
        </Tabs.Panel>
        <Tabs.Panel value="versions">
          <Versions {...facts} page={shown.page ?? 1} version={shown.version} show={show} />
        </Tabs.Panel>
        <Tabs.Panel value="files">
          <Files {...facts} {...shown} show={show} />
        </Tabs.Panel>
        <Tabs.Panel value="access">
          <Access {...facts} page={shown.page ?? 1} />
        </Tabs.Panel>
        <Tabs.Panel value="settings">
          <Settings {...facts} isAdministrator={isAdministrator} />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}
