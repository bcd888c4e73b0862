import { Badge, Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Empty } from '../../lists/empty.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import { Table } from '../../lists/table.tsx';
import { PlusIcon, SparkIcon } from '../../shell/icons.tsx';
import { useShortcut } from '../../shell/shortcuts.ts';
import common from '../admin.module.css';
import { agentDefinitions } from '../queries.ts';
import { TextLink } from '../text-link.tsx';

const steps = [
  { do: 'Say what the agents are for,', why: 'and give them instructions. They get them when they connect.' },
  {
    do: 'Name the tools that they need.',
    why: 'They get no other tools, and never more than the MCP policy allows.',
  },
  { do: 'Choose its workspace:', why: 'the repositories, Environments and sites that its agents reach.' },
  {
    do: 'Name its clients, or let people choose it.',
    why: 'Without a definition, agents of a client only read.',
  },
];

/** What agents are for, and which tools they get. */
export function DefinitionsPage() {
  const found = useQuery({ ...agentDefinitions, select: ({ definitions }) => definitions });
  const navigate = useNavigate();
  useShortcut('n', () => void navigate({ to: '/admin/agents/new' }));
  return (
    <>
      <PageHead title="Agents" intro="What the agents of a client are for, and which tools they get.">
        <Button leftSection={<PlusIcon />} renderRoot={(props) => <Link to="/admin/agents/new" {...props} />}>
          New definition
        </Button>
      </PageHead>
      <List
        what="definitions"
        found={found}
        empty={
          <Empty picture={<SparkIcon size={28} />} title="No agent definitions yet" steps={steps}>
            <Button renderRoot={(props) => <Link to="/admin/agents/new" {...props} />}>
              Create a definition
            </Button>
          </Empty>
        }
      >
        {(all) => (
          <Table
            caption="Agent definitions"
            columns={['Name', 'Purpose', 'Clients', 'Tools']}
            isStale={false}
          >
            {all.map(({ id, name, purpose, clients, tools, instructionsStatus, isOffered }) => (
              <tr key={id}>
                <th scope="row" dir="auto" className={common['name']}>
                  <TextLink to="/admin/agents/$id" params={{ id }} inherit>
                    {name}
                  </TextLink>
                  {instructionsStatus === 'stale' && (
                    <Badge ml="xs" color="yellow" variant="light">
                      Older default
                    </Badge>
                  )}
                </th>
                <td data-label="Purpose" className="wrap">
                  <bdi>{purpose}</bdi>
                </td>
                <td data-label="Clients" className={common['address']}>
                  {clients.length > 0 && <code>{clients.join(', ')}</code>}
                  {isOffered && <span className="quiet"> People may choose it</span>}
                  {clients.length === 0 && !isOffered && <span className="quiet">None</span>}
                </td>
                <td data-label="Tools">{Object.values(tools).filter((rule) => rule !== 'hidden').length}</td>
              </tr>
            ))}
          </Table>
        )}
      </List>
    </>
  );
}
