import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { AddToClient } from '../../agents/add-to-client.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import { DocumentView } from '../documents/document-view.tsx';
import { mcpClients } from '../queries.ts';
import { mcpSections } from './mcp-fields.ts';
import { mcpPolicyApi } from './mcp-policy-api.tsx';

/** The MCP policy: whether agents can use Postern, and which tools they can call. */
export function McpPage() {
  const { data: clients = [] } = useQuery(mcpClients);
  const waiting = clients.filter(({ status }) => status === 'waiting').length;
  return (
    <>
      <PageHead
        title="MCP"
        intro="Control whether coding assistants and other agents can use Postern, and which tools they can call."
      >
        <Button variant="default" renderRoot={(props) => <Link to="/admin/mcp/clients" {...props} />}>
          {waiting > 0 ? `Clients (${waiting} waiting)` : 'Clients'}
        </Button>
      </PageHead>
      <AddToClient />
      <DocumentView api={mcpPolicyApi} sections={mcpSections} />
    </>
  );
}
