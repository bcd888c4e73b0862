import { Alert, Anchor, Button, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { api, unwrap } from '../../../api/client.ts';
import type { Schemas } from '../../../api/contract.ts';
import { NoMatch } from '../../../lists/empty.tsx';
import { PageHead } from '../../../lists/page-head.tsx';
import { TableLoading } from '../../../lists/table.tsx';
import { NotFound } from '../../../shell/not-found.tsx';
import { Problem } from '../../../shell/problem.tsx';
import { useChange } from '../../../shell/use-change.ts';
import common from '../../admin.module.css';
import { mcpServers, mcpServerTools } from '../../queries.ts';
import { authWords } from './server-form.tsx';
import { ToolCard } from './tool-card.tsx';

const route = getRouteApi('/administration/admin/mcp/servers/$slug');

/** One external server: what its tools say, and which of them agents get. */
export function ServerPage() {
  const { slug } = route.useParams();
  const servers = useQuery(mcpServers);
  const tools = useQuery(mcpServerTools(slug));
  const server = servers.data?.servers.find((one) => one.slug === slug);
  if (servers.data !== undefined && server === undefined) return <NotFound />;
  const all = tools.data?.tools ?? [];
  // Tools that wait for the administrator come first.
  const sorted = [...all].sort((a, b) => Number(a.status === 'accepted') - Number(b.status === 'accepted'));
  const error = servers.error ?? tools.error;
  return (
    <>
      <Anchor component={Link} to="/admin/mcp/servers" size="sm">
        ← External MCP servers
      </Anchor>
      <PageHead
        title={server?.name ?? 'External MCP server'}
        intro="Agents get a tool with exactly the text that you accepted. Read it as data: it can hold instructions for language models."
      />
      {error !== null && (
        <Problem error={error} onRetry={() => void Promise.all([servers.refetch(), tools.refetch()])} />
      )}
      {server !== undefined && (
        <section className={common['card']}>
          <dl className={common['facts']}>
            <dt>Address</dt>
            <dd>
              <code>{server.url}</code>
            </dd>
            <dt>How people connect</dt>
            <dd>{authWords[server.auth]}</dd>
            {server.issuer !== null && (
              <>
                <dt>People sign in at</dt>
                <dd>
                  <code>{server.issuer}</code>
                </dd>
              </>
            )}
          </dl>
        </section>
      )}
      {server !== undefined && server.changedIssuer !== null && (
        <ChangedIssuer slug={slug} from={server.issuer} to={server.changedIssuer} />
      )}
      {tools.isPending && <TableLoading what="tools" />}
      {tools.data !== undefined && all.length === 0 && (
        <NoMatch
          button={
            <Button variant="default" renderRoot={(props) => <Link to="/settings/connections" {...props} />}>
              Connect your account
            </Button>
          }
        >
          Its tools are known once a person has connected an account.
        </NoMatch>
      )}
      {tools.data !== undefined && all.length > 0 && (
        <Text size="sm" mb="sm">
          You accepted {tools.data.accepted} of {tools.data.total} {tools.data.total === 1 ? 'tool' : 'tools'}
          . Agents get only those.
        </Text>
      )}
      {server !== undefined && sorted.map((tool) => <ToolCard key={tool.name} server={server} tool={tool} />)}
    </>
  );
}

type Issuers = { readonly slug: string; readonly from: Schemas['McpServer']['issuer']; readonly to: string };

function ChangedIssuer({ slug, from, to }: Issuers) {
  const decide = (issuer: string) => () =>
    unwrap(api.PATCH('/config/mcp/servers/{slug}', { params: { path: { slug } }, body: { issuer } }));
  const keep = useChange({
    act: decide(from ?? to),
    said: 'People sign in where they did before.',
    refresh: ['admin', 'servers'],
  });
  const accept = useChange({
    act: decide(to),
    said: 'The sign-in is accepted.',
    refresh: ['admin', 'servers'],
  });
  const error = keep.error ?? accept.error;
  const isFirst = from === null;
  return (
    <Alert
      color="yellow"
      title={isFirst ? 'Accept the sign-in of the server' : 'The server names another sign-in'}
      mb="md"
      role="alert"
    >
      <p>
        {isFirst ? 'It sends people to' : 'It now sends people to'} <code className="wrap">{to}</code>
        {isFirst
          ? ', which no administrator has accepted. No one can connect yet.'
          : '. All connections were removed.'}{' '}
        Ask its operator whether this is right before you accept it.
      </p>
      {error !== undefined && <Problem error={error} />}
      <div className={common['buttons']}>
        {!isFirst && (
          <Button variant="default" size="xs" loading={keep.isBusy} onClick={keep.run}>
            Keep the old one
          </Button>
        )}
        <Button size="xs" loading={accept.isBusy} onClick={accept.run}>
          {isFirst ? 'Accept it' : 'Accept the new one'}
        </Button>
      </div>
    </Alert>
  );
}
