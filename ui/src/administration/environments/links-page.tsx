import { Anchor, Button, Modal, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { LinkIcon, PlusIcon } from '../../shell/icons.tsx';
import { Problem } from '../../shell/problem.tsx';
import { useShortcut } from '../../shell/shortcuts.ts';
import { Empty } from '../../lists/empty.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import { Table } from '../../lists/table.tsx';
import { Confirm } from '../../shell/confirm.tsx';
import { useChange } from '../../shell/use-change.ts';
import common from '../admin.module.css';
import { RowButtons, useEditing } from '../editing.tsx';
import { metadataLinks } from '../queries.ts';
import { LinkForm } from './link-form.tsx';
import { linkPictures } from '../../environments/link-icon.tsx';
import styles from './links.module.css';

type MetadataLink = Schemas['MetadataLink'];

const steps = [
  { do: 'Add a link once.', why: 'Every Environment shows it, with its own branch, commit or name.' },
  { do: 'Move it to its place.', why: 'Environments show the links in this order.' },
];

/** Links that every Environment shows. */
export function LinksPage() {
  const found = useQuery({ ...metadataLinks, select: ({ links }) => links });
  const { heading, editing, leaving, edit, leave, close, done } = useEditing<MetadataLink>();
  useShortcut('n', () => edit('new'));
  return (
    <>
      <Anchor component={Link} to="/admin/environments" size="sm">
        ← Environments
      </Anchor>
      <PageHead
        title="Metadata links"
        intro="Links for every Environment, such as to its source code or its logs."
        heading={heading}
      >
        <Button leftSection={<PlusIcon />} onClick={() => edit('new')}>
          New link
        </Button>
      </PageHead>
      <List
        what="links"
        found={found}
        empty={
          <Empty picture={<LinkIcon size={28} />} title="No metadata links yet" steps={steps}>
            <Button onClick={() => edit('new')}>Add a link</Button>
          </Empty>
        }
      >
        {(all) => (
          <Table caption="Metadata links" columns={['Text', 'Address', 'Place']} hasActions isStale={false}>
            {all.map((link) => (
              <Row
                key={link.id}
                of={link}
                count={all.length}
                onChange={() => edit(link)}
                onEnd={() => leave(link)}
              />
            ))}
          </Table>
        )}
      </List>
      <Modal
        opened={editing !== undefined}
        title={editing === 'new' ? 'New metadata link' : 'Change this link'}
        onClose={close}
      >
        {editing !== undefined && (
          <LinkForm {...(editing === 'new' ? {} : { of: editing })} onClose={close} onDone={done} />
        )}
      </Modal>
      <Modal opened={leaving !== undefined} title="Delete this link?" onClose={close}>
        {leaving !== undefined && (
          <Confirm
            act={() => api.DELETE('/config/metadata/{id}', { params: { path: { id: leaving.id } } })}
            said={`${leaving.text} is deleted.`}
            refresh={['admin', 'metadata']}
            confirm="Delete link"
            keep="Keep it"
            onClose={close}
            onDone={done}
          >
            <Text size="sm">
              <b className="wrap">
                <bdi>{leaving.text}</bdi>
              </b>{' '}
              is no longer shown on any Environment.
            </Text>
          </Confirm>
        )}
      </Modal>
    </>
  );
}

type RowProps = {
  readonly of: MetadataLink;
  readonly count: number;
  readonly onChange: () => void;
  readonly onEnd: () => void;
};

function Row({ of: { id, text, icon, link, position }, count, onChange, onEnd }: RowProps) {
  const Picture = linkPictures[icon];
  return (
    <tr>
      <th scope="row" className={common['name']}>
        <span className={styles['text']}>
          <Picture />
          <bdi>{text}</bdi>
        </span>
      </th>
      <td data-label="Address" className={common['address']}>
        <code>{link}</code>
      </td>
      <td data-label="Place">
        <span className={styles['place']}>
          <Move id={id} to={position - 1} isPossible={position > 1} label={`Move ${text} up`} words="Up" />
          <Move
            id={id}
            to={position + 1}
            isPossible={position < count}
            label={`Move ${text} down`}
            words="Down"
          />
        </span>
      </td>
      <td>
        <RowButtons name={text} end="Delete" onChange={onChange} onEnd={onEnd} />
      </td>
    </tr>
  );
}

type MoveProps = {
  readonly id: string;
  readonly to: number;
  readonly isPossible: boolean;
  readonly label: string;
  readonly words: string;
};

/** Not disabled at the ends of the list: a disabled button would lose the focus after the last step. */
function Move({ id, to, isPossible, label, words }: MoveProps) {
  const { run, error, isBusy } = useChange({
    act: () =>
      unwrap(api.PATCH('/config/metadata/{id}', { params: { path: { id } }, body: { position: to } })),
    said: `Moved to place ${to}.`,
    refresh: ['admin', 'metadata'],
  });
  return (
    <>
      <Button
        variant="default"
        size="xs"
        aria-label={label}
        aria-disabled={!isPossible}
        {...(isPossible ? {} : { 'data-disabled': true })}
        onClick={() => {
          if (isPossible && !isBusy) run();
        }}
      >
        {words}
      </Button>
      {error !== undefined && <Problem error={error} />}
    </>
  );
}
