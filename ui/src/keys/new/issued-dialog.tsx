import { Alert, Anchor, Button, Checkbox, Modal, Text } from '@mantine/core';
import { useId, useRef, useState } from 'react';
import type { Schemas } from '../../api/contract.ts';
import { Command } from '../../shell/command.tsx';
import { copyFrom } from '../../shell/copy.ts';
import { CopyIcon, DownloadIcon } from '../../shell/icons.tsx';
import { CiJobs } from '../../shell/ci-jobs.tsx';
import { askWhoAmI, deployFolder, publishPage, tryCommandLine } from '../../shell/snippets.ts';
import styles from './issued-dialog.module.css';
import { VerifyKey } from './verify-key.tsx';

type DialogProps = {
  /** Undefined: there is no key to show, and no dialog. */
  issued: Schemas['IssuedKey'] | undefined;
  /** What “Verify now” means for the key that is replaced, where one is. */
  verifyNote?: string;
  onStored: () => void;
};

/** Shows a key's value once. Escape and clicks outside do not close it; only the confirmation that the value is stored does. */
export function IssuedDialog({ issued, verifyNote, onStored }: DialogProps) {
  return (
    <Modal
      opened={issued !== undefined}
      onClose={onStored}
      closeOnEscape={false}
      closeOnClickOutside={false}
      withCloseButton={false}
      size="lg"
      title="Store your key now"
    >
      {issued !== undefined && <Value issued={issued} verifyNote={verifyNote} onStored={onStored} />}
    </Modal>
  );
}

type ValueProps = { issued: Schemas['IssuedKey']; verifyNote: string | undefined; onStored: () => void };

function Value({ issued, verifyNote, onStored }: ValueProps) {
  const [isStored, setStored] = useState(false);
  const [copied, setCopied] = useState('');
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);

  async function copy(): Promise<void> {
    if (field.current === null) return;
    const isCopied = await copyFrom(field.current);
    setCopied(
      isCopied ? 'Copied.' : 'The browser refused. The value is selected: copy it with the keyboard.',
    );
  }

  return (
    <div className={styles['stack']}>
      <Alert color="yellow">
        The value of <bdi className={styles['name']}>{issued.name}</bdi> is shown this once. Postern keeps
        only a digest and cannot show it again.
      </Alert>
      <div className={styles['field']}>
        <label htmlFor={id}>Key</label>
        <textarea
          id={id}
          ref={field}
          className={styles['value']}
          rows={1}
          readOnly
          spellCheck={false}
          autoComplete="off"
          data-autofocus
          value={issued.token}
          onFocus={({ currentTarget }) => currentTarget.select()}
        />
      </div>
      <div className={styles['actions']}>
        <Button leftSection={<CopyIcon />} onClick={() => void copy()}>
          Copy
        </Button>
        <Button variant="default" leftSection={<DownloadIcon />} onClick={() => download(issued)}>
          Download as file
        </Button>
        <span role="status" className={styles['copied']}>
          {copied}
        </span>
      </div>
      <div>
        <VerifyKey token={issued.token} />
        {verifyNote !== undefined && (
          <Text size="xs" c="dimmed" mt={6}>
            {verifyNote}
          </Text>
        )}
      </div>
      <div>
        <Text size="sm" fw={500} mb={4}>
          Test the key, after you set <code>POSTERN_KEY</code> to its value
        </Text>
        <Command text={askWhoAmI()} of="try the key" />
      </div>
      <div>
        <Text size="sm" fw={500} mb={4}>
          With the{' '}
          <Anchor href="/settings/command-line" target="_blank" underline="always">
            command line
          </Anchor>
        </Text>
        <Command
          text={issued.scopes.includes('sites:write') ? deployFolder() : tryCommandLine()}
          of="use the command line"
        />
      </div>
      {issued.scopes.includes('sites:write') && (
        <div>
          <Text size="sm" fw={500} mb={4}>
            Publish a site with the key
          </Text>
          <Command text={publishPage()} of="publish a site" />
          <CiJobs />
        </div>
      )}
      <div>
        <Text size="sm" fw={500} mb={4}>
          Store the key as a GitHub Actions secret; the command asks for its value
        </Text>
        <Command text="gh secret set POSTERN_KEY" of="store the key as a GitHub Actions secret" />
      </div>
      <div className={styles['end']}>
        <Checkbox
          label="I have stored it"
          checked={isStored}
          onChange={({ currentTarget }) => setStored(currentTarget.checked)}
        />
        <Button disabled={!isStored} onClick={onStored}>
          Done
        </Button>
      </div>
    </div>
  );
}

/** A file to source or to move into a secret store. The browser's copy in memory is released immediately. */
function download({ id, token }: Schemas['IssuedKey']): void {
  const address = URL.createObjectURL(new Blob([`POSTERN_KEY=${token}\n`], { type: 'text/plain' }));
  const link = document.createElement('a');
  link.href = address;
  link.download = `postern-${id}.env`;
  link.click();
  URL.revokeObjectURL(address);
}
