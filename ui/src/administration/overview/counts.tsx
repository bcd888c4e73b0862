import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Tile, Tiles } from '../../lists/tiles.tsx';
import { useHasEnvironments } from '../../shell/areas.ts';
import {
  countedEnvironments,
  agentDefinitions,
  managedKeys,
  mcpClients,
  people,
  publicSites,
} from '../queries.ts';

const one = { limit: 1 } as const;

/** How many there are of everything, each with the way to its page. */
export function Counts() {
  const known = useQuery(people(one));
  const personal = useQuery(managedKeys({ kind: 'personal', status: 'active', ...one }));
  const service = useQuery(managedKeys({ kind: 'service', status: 'active', ...one }));
  const sites = useQuery(publicSites({ visibility: 'public', ...one }));
  const hasEnvironments = useHasEnvironments();
  const environments = useQuery({ ...countedEnvironments, enabled: hasEnvironments });
  const { data: agents } = useQuery(agentDefinitions);
  const { data: clients } = useQuery(mcpClients);
  const waiting = clients?.filter(({ status }) => status === 'waiting').length;
  return (
    <Tiles label="Counts">
      <Tile number={itemsOf(known)}>
        <Link to="/admin/users">people</Link>
      </Tile>
      <Tile number={itemsOf(personal)}>
        <Link to="/admin/user-keys">active keys of users</Link>
      </Tile>
      <Tile number={itemsOf(service)}>
        <Link to="/admin/service-keys">active service keys</Link>
      </Tile>
      <Tile number={itemsOf(sites)}>
        <Link to="/admin/sites/all">public sites</Link>
      </Tile>
      {hasEnvironments && (
        <Tile number={itemsOf(environments)}>
          <Link to="/environments" search={{ whose: 'all' }}>
            Environments
          </Link>
        </Tile>
      )}
      <Tile number={agents?.definitions.length}>
        <Link to="/admin/agents">agent definitions</Link>
      </Tile>
      <Tile number={waiting}>
        <Link to="/admin/mcp/clients">MCP clients wait for approval</Link>
      </Tile>
    </Tiles>
  );
}

type Counted = {
  readonly data?: { readonly metadata: { readonly pagination: { readonly items: number } } } | undefined;
};

function itemsOf({ data }: Counted): number | undefined {
  return data?.metadata.pagination.items;
}
