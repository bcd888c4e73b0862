import { Alert, Anchor, Button, Checkbox, Modal, Text } from '@mantine/core';
import { useState } from 'react';
import type { Schemas } from '../../api/contract.ts';
import { Command } from '../../shell/command.tsx';
import { CiJobs } from '../../shell/ci-jobs.tsx';
import { askWhoAmI, deployFolder, publishPage, tryCommandLine } from '../../shell/snippets.ts';
import styles from './issued-dialog.module.css';
import { ValueField } from './value-field.tsx';
import { VerifyKey } from './verify-key.tsx';

type DialogProps = {
  /** Undefined: there is no key to show, and no dialog. */
  issued: Schemas['IssuedKey'] | undefined;
  /** The effect of “Verify now” on the key that is replaced, if there is one. */
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
      title={issued?.sealed === undefined ? 'Store your key now' : 'Deliver the sealed key'}
    >
      {issued?.token !== undefined && (
        <Value issued={issued} token={issued.token} verifyNote={verifyNote} onStored={onStored} />
      )}
      {issued?.sealed !== undefined && <Sealed issued={issued} sealed={issued.sealed} onStored={onStored} />}
    </Modal>
  );
}

type ValueProps = {
  issued: Schemas['IssuedKey'];
  token: string;
  verifyNote: string | undefined;
  onStored: () => void;
};
type SealedProps = { issued: Schemas['IssuedKey']; sealed: Schemas['SealedValue']; onStored: () => void };

function Value({ issued, token, verifyNote, onStored }: ValueProps) {
  const [isStored, setStored] = useState(false);
  const isServiceKey = issued.type === 'service';

  return (
    <div className={styles['stack']}>
      <Alert color="yellow">
        The value of <bdi className={styles['name']}>{issued.name}</bdi> is shown this once. Postern keeps
        only a digest and cannot show it again.
      </Alert>
      <ValueField
        label="Key"
        value={token}
        fileName={`postern-${issued.id}.env`}
        file={`POSTERN_KEY=${token}\n`}
      />
      <div>
        <VerifyKey token={token} />
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
          text={issued.scopes.includes('sites:write') ? deployFolder({ isServiceKey }) : tryCommandLine()}
          of="use the command line"
        />
      </div>
      {issued.scopes.includes('sites:write') && (
        <div>
          <Text size="sm" fw={500} mb={4}>
            Publish a site with the key
          </Text>
          <Command text={publishPage()} of="publish a site" />
          <CiJobs isServiceKey={isServiceKey} />
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
          description="Esc does not close this dialog, so that the value is not lost by accident."
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

/** Shows a value that only the holder of the private key can open. It may be shown again: it is useless to anyone else. */
function Sealed({ issued: { id, name }, sealed, onStored }: SealedProps) {
  const file = `postern-${id}.sealed`;
  // An armored file ends with a line break.
  const text = sealed.value.trim();
  return (
    <div className={styles['stack']}>
      <Alert>
        The value of <bdi className={styles['name']}>{name}</bdi> is encrypted: only the holder of the private
        key can open it. Postern cannot show it again; a new key takes its place if this text is lost.
      </Alert>
      <ValueField label="Sealed key" value={text} fileName={file} file={`${text}\n`} />
      <div>
        <Text size="sm" fw={500} mb={4}>
          Where the private key is
        </Text>
        <Command text={`postern keys open ${file} --private-key FILE`} of="open the sealed key" />
      </div>
      <div className={styles['end']}>
        <Button onClick={onStored}>Done</Button>
      </div>
    </div>
  );
}
