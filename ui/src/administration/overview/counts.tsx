import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Tile, Tiles } from '../../lists/tiles.tsx';
import { useHasEnvironments } from '../../shell/areas.ts';
import { itemsOf, nounOf } from '../../shell/count.ts';
import {
  countedEnvironments,
  agentDefinitions,
  managedKeys,
  mcpClients,
  people,
  publicSites,
} from '../queries.ts';

const one = { limit: 1 } as const;

/** Totals of the installation. Each links to its page. */
export function Counts() {
  const known = itemsOf(useQuery(people(one)).data);
  const personal = itemsOf(useQuery(managedKeys({ kind: 'personal', status: 'active', ...one })).data);
  const service = itemsOf(useQuery(managedKeys({ kind: 'service', status: 'active', ...one })).data);
  const sites = itemsOf(useQuery(publicSites({ visibility: 'public', ...one })).data);
  const hasEnvironments = useHasEnvironments();
  const environments = itemsOf(useQuery({ ...countedEnvironments, enabled: hasEnvironments }).data);
  const agents = useQuery(agentDefinitions).data?.definitions.length;
  const { data: clients } = useQuery(mcpClients);
  const waiting = clients?.filter(({ status }) => status === 'waiting').length;
  return (
    <Tiles label="Counts">
      <Tile number={known}>
        <Link to="/admin/users">{nounOf(known, 'person', 'people')}</Link>
      </Tile>
      <Tile number={personal}>
        <Link to="/admin/user-keys">{nounOf(personal, 'active user key')}</Link>
      </Tile>
      <Tile number={service}>
        <Link to="/admin/service-keys">{nounOf(service, 'active service key')}</Link>
      </Tile>
      <Tile number={sites}>
        <Link to="/admin/sites/all">{nounOf(sites, 'public site')}</Link>
      </Tile>
      {hasEnvironments && (
        <Tile number={environments}>
          <Link to="/environments" search={{ whose: 'all' }}>
            {nounOf(environments, 'Environment')}
          </Link>
        </Tile>
      )}
      <Tile number={agents}>
        <Link to="/admin/agents">{nounOf(agents, 'agent definition')}</Link>
      </Tile>
      <Tile number={waiting}>
        <Link to="/admin/mcp/clients">
          {nounOf(waiting, 'MCP client waiting', 'MCP clients waiting')} for approval
        </Link>
      </Tile>
    </Tiles>
  );
}
