import { Badge, Button, Modal, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { PageHead } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import { Table } from '../../lists/table.tsx';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { Confirm } from '../../shell/confirm.tsx';
import common from '../admin.module.css';
import { mcpClients } from '../queries.ts';
import { TextLink } from '../text-link.tsx';
import { focusIfLost } from '../../shell/focus.ts';

type Client = Schemas['McpClient'];
type Decision = { readonly client: Client; readonly status: 'allowed' | 'blocked' };

const statuses = {
  waiting: ['Waits for you', 'yellow'],
  allowed: ['Allowed', 'green'],
  blocked: ['Blocked', 'red'],
} as const;

/** The programs in which agents run, with those that wait for an administrator first. */
export function ClientsPage() {
  const found = useQuery(mcpClients);
  const [decision, setDecision] = useState<Decision>();
  const heading = useRef<HTMLHeadingElement>(null);
  const now = useNow();
  return (
    <>
      <TextLink to="/admin/mcp" size="sm">
        ← MCP
      </TextLink>
      <PageHead
        title="Connected clients"
        intro="The programs in which agents run. A client that is not allowed can neither read nor change anything."
        heading={heading}
      />
      <List
        what="clients"
        found={found}
        empty={<Text size="sm">No agent has used this installation yet.</Text>}
      >
        {(clients) => (
          <Table
            caption="Connected clients"
            columns={['Client', 'Status', 'Redirect hosts', 'People', 'Last use']}
            hasActions
            isStale={false}
          >
            {clients.map((client) => (
              <tr key={client.clientId}>
                <th scope="row" className={common['name']}>
                  <bdi>{client.name}</bdi>
                  {client.registeredAt !== null && <span className={common['more']}>Unverified name</span>}
                  {client.name !== client.clientId && <code>{client.clientId}</code>}
                </th>
                <td data-label="Status">
                  <Badge color={statuses[client.status][1]}>{statuses[client.status][0]}</Badge>
                </td>
                <td data-label="Redirect hosts" className="wrap">
                  {client.redirectHosts.length === 0 ? (
                    <span className="quiet">Not recorded</span>
                  ) : (
                    <code>{client.redirectHosts.join(', ')}</code>
                  )}
                </td>
                <td data-label="People">{client.people.toLocaleString()}</td>
                <td data-label="Last use">
                  {client.lastUsedAt === null ? 'Never' : <Moment at={client.lastUsedAt} now={now} />}
                </td>
                <td>
                  <Decisions of={client} onDecide={setDecision} />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </List>
      <Modal
        opened={decision !== undefined}
        title={decision?.status === 'blocked' ? 'Block this client?' : 'Allow this client?'}
        onClose={() => setDecision(undefined)}
      >
        {decision !== undefined && (
          <Question
            of={decision}
            onClose={() => setDecision(undefined)}
            onDone={() => focusIfLost(heading.current)}
          />
        )}
      </Modal>
    </>
  );
}

function Decisions({ of: client, onDecide }: { of: Client; onDecide: (decision: Decision) => void }) {
  const { name, status } = client;
  return (
    <div className={common['rowButtons']}>
      {status !== 'allowed' && (
        <Button
          variant="default"
          size="xs"
          aria-label={`Allow ${name}`}
          onClick={() => onDecide({ client, status: 'allowed' })}
        >
          Allow
        </Button>
      )}
      {status !== 'blocked' && (
        <Button
          variant="default"
          size="xs"
          aria-label={`Block ${name}`}
          onClick={() => onDecide({ client, status: 'blocked' })}
        >
          Block
        </Button>
      )}
    </div>
  );
}

type QuestionProps = { readonly of: Decision; readonly onClose: () => void; readonly onDone: () => void };

function Question({ of: { client, status }, onClose, onDone }: QuestionProps) {
  const { clientId, name, redirectHosts, registeredAt } = client;
  const isBlocking = status === 'blocked';
  return (
    <Confirm
      act={() =>
        unwrap(
          api.PATCH('/config/mcp/clients/{id}', { params: { path: { id: clientId } }, body: { status } }),
        )
      }
      said={`${name} is ${status}.`}
      refresh={['admin', 'agents']}
      confirm={isBlocking ? 'Block now' : 'Allow now'}
      keep="Cancel"
      isHarmless={!isBlocking}
      onClose={onClose}
      onDone={onDone}
    >
      <Text size="sm">
        <b className="wrap">
          <bdi>{name}</bdi>
        </b>{' '}
        {isBlocking
          ? 'will be blocked. Within a second, Postern refuses its requests. The consents of people stay, and give no access until you allow it again.'
          : 'may act for every person who allowed it. This takes effect within a second.'}
      </Text>
      {!isBlocking && registeredAt !== null && (
        <Text size="sm" mt="xs">
          Nobody has checked this name. The client sends people back to{' '}
          <code className="wrap">{redirectHosts.join(', ')}</code>.
        </Text>
      )}
    </Confirm>
  );
}
