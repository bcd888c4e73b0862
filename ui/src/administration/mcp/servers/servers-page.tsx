import { Anchor, Badge, Button, Modal, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { api } from '../../../api/client.ts';
import type { Schemas } from '../../../api/contract.ts';
import { Empty } from '../../../lists/empty.tsx';
import { PageHead } from '../../../lists/page-head.tsx';
import { List } from '../../../lists/list.tsx';
import { Table } from '../../../lists/table.tsx';
import { PlusIcon, SocketIcon } from '../../../shell/icons.tsx';
import { useShortcut } from '../../../shell/shortcuts.ts';
import { Confirm } from '../../../shell/confirm.tsx';
import common from '../../admin.module.css';
import { RowButtons, useEditing } from '../../editing.tsx';
import { mcpServers } from '../../queries.ts';
import { TextLink } from '../../text-link.tsx';
import { FreshSignIn } from '../../../shell/fresh-sign-in.tsx';
import { ServerForm } from './server-form.tsx';

type Server = Schemas['McpServer'];

const steps = [
  { do: 'Add a server.', why: 'People connect their own accounts there, in Settings.' },
  {
    do: 'Read its tools, and accept those that agents may have.',
    why: 'They are known once a person has connected. A changed text must be accepted again.',
  },
  { do: 'Name the tools in agent definitions.', why: 'A client without a definition only reads.' },
];

/** External MCP servers, whose tools agents get through Postern. */
export function ServersPage() {
  const found = useQuery({ ...mcpServers, select: ({ servers }) => servers });
  const { heading, editing, leaving, edit, leave, close, done } = useEditing<Server>();
  useShortcut('n', () => edit('new'));
  return (
    <>
      <Anchor component={Link} to="/admin/mcp" size="sm">
        ← MCP
      </Anchor>
      <PageHead
        title="External MCP servers"
        intro="Servers outside Postern, such as an issue tracker. Agents use their tools through Postern."
        heading={heading}
      >
        <Button leftSection={<PlusIcon />} onClick={() => edit('new')}>
          New server
        </Button>
      </PageHead>
      <List
        what="servers"
        found={found}
        empty={
          <Empty picture={<SocketIcon size={28} />} title="No external servers yet" steps={steps}>
            <Button onClick={() => edit('new')}>Add a server</Button>
          </Empty>
        }
      >
        {(all) => (
          <Table
            caption="External MCP servers"
            columns={['Name', 'Address', 'Status']}
            hasActions
            isStale={false}
          >
            {all.map((server) => (
              <tr key={server.slug}>
                <th scope="row" className={common['name']}>
                  <TextLink to="/admin/mcp/servers/$slug" params={{ slug: server.slug }} inherit>
                    <bdi>{server.name}</bdi>
                  </TextLink>
                  <code>{server.slug}__…</code>
                </th>
                <td data-label="Address" className={common['address']}>
                  <code>{server.url}</code>
                </td>
                <td data-label="Status">
                  <StatusOf server={server} />
                </td>
                <td>
                  <RowButtons
                    name={server.name}
                    end="Delete"
                    onChange={() => edit(server)}
                    onEnd={() => leave(server)}
                  />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </List>
      <Modal
        opened={editing !== undefined}
        title={editing === 'new' ? 'New external MCP server' : 'Change this server'}
        onClose={close}
      >
        {editing === 'new' && (
          <FreshSignIn>
            <ServerForm onClose={close} onDone={done} />
          </FreshSignIn>
        )}
        {editing !== undefined && editing !== 'new' && (
          <ServerForm of={editing} onClose={close} onDone={done} />
        )}
      </Modal>
      <Modal opened={leaving !== undefined} title="Delete this server?" onClose={close}>
        {leaving !== undefined && (
          <Confirm
            act={() => api.DELETE('/config/mcp/servers/{slug}', { params: { path: { slug: leaving.slug } } })}
            said={`${leaving.name} is deleted.`}
            refresh={['admin', 'servers']}
            confirm="Delete server"
            keep="Keep it"
            onClose={close}
            onDone={done}
          >
            <Text size="sm">
              The connections of all people to{' '}
              <b className="wrap">
                <bdi>{leaving.name}</bdi>
              </b>{' '}
              are removed, and agents lose its tools.
            </Text>
          </Confirm>
        )}
      </Modal>
    </>
  );
}

function StatusOf({ server: { enabled, issuer, changedIssuer } }: { readonly server: Server }) {
  if (!enabled) return <Badge color="gray">Off</Badge>;
  return changedIssuer === null ? (
    <Badge color="green">On</Badge>
  ) : (
    <Badge color="yellow">{issuer === null ? 'Accept the sign-in' : 'Sign-in changed'}</Badge>
  );
}
