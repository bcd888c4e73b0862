import { Button, Group, Modal, Progress, Text } from '@mantine/core';
import { useBlocker } from '@tanstack/react-router';
import { bytesInWords } from '../../shell/bytes.ts';
import styles from '../../shell/page.module.css';
import { isResumable, type Job, type Stage } from './job.ts';

type ProgressProps = { readonly stage: Stage; readonly job: Job; readonly onStop: () => void };

/** Shows two stages, sending and processing, so that a full bar is explained while the server checks the files. */
export function UploadProgress({ stage, job, onStop }: ProgressProps) {
  const canResume = isResumable(job);
  const blocker = useBlocker({
    shouldBlockFn: () => true,
    // A digest upload resumes after a reload; an archive would start again.
    enableBeforeUnload: !canResume,
    withResolver: true,
  });
  const isProcessing = stage.kind === 'processing';
  const share = shareOf(stage);
  return (
    <section className={styles['card']} aria-label="Upload">
      <h2>{titleOf(stage, job)}</h2>
      <p className={styles['hint']} role="status">
        {wordsOf(stage, job)}
      </p>
      <Progress.Root size="lg" mb="md">
        <Progress.Section
          value={share}
          animated={isProcessing}
          striped={isProcessing}
          aria-label={isProcessing ? 'Processing' : 'Sent'}
        />
      </Progress.Root>
      <div className={styles['actions']}>
        <Button variant="default" onClick={onStop} disabled={isProcessing && !job.isCheckOnly}>
          Cancel
        </Button>
        <span className="quiet">
          {isProcessing ? 'Step 2 of 2' : 'Step 1 of 2'}
          {canResume && !isProcessing && ' · a reload or a lost connection loses nothing that was sent'}
        </span>
      </div>
      <LeaveDialog
        isOpen={blocker.status === 'blocked'}
        onStay={() => blocker.reset?.()}
        onLeave={() => blocker.proceed?.()}
      />
    </section>
  );
}

function titleOf(stage: Stage, { isCheckOnly }: Job): string {
  if (stage.kind === 'reading') return 'Reading the files';
  if (stage.kind === 'waiting') return 'Waiting to retry';
  if (stage.kind === 'sending') return isCheckOnly ? 'Sending to be checked' : 'Uploading';
  return isCheckOnly ? 'Checking' : 'Processing';
}

function wordsOf(stage: Stage, { isCheckOnly }: Job): string {
  switch (stage.kind) {
    case 'reading':
      return 'To find out which files the server already has.';
    case 'sending':
      return `${bytesInWords(stage.sent)} of ${bytesInWords(stage.total)}`;
    case 'waiting':
      return `${stage.because} The upload retries in ${Math.ceil(stage.seconds)} s.`;
    case 'processing':
      return isCheckOnly
        ? 'Everything is sent. The server checks each file and keeps nothing.'
        : 'Everything is sent. The server checks each file; then everything goes live at once.';
  }
}

function shareOf(stage: Stage): number {
  if (stage.kind === 'processing') return 100;
  const done = stage.kind === 'reading' ? stage.done : stage.sent;
  return stage.total === 0 ? 0 : Math.round((done / stage.total) * 100);
}

type LeaveProps = { readonly isOpen: boolean; readonly onStay: () => void; readonly onLeave: () => void };

function LeaveDialog({ isOpen, onStay, onLeave }: LeaveProps) {
  return (
    <Modal opened={isOpen} onClose={onStay} title="Stop the upload?">
      <Text size="sm">
        The upload is not finished. If you leave this page, it stops, and nothing is published.
      </Text>
      <Group justify="flex-end" mt="md" gap="sm">
        <Button variant="default" onClick={onStay}>
          Stay here
        </Button>
        <Button color="red" onClick={onLeave}>
          Stop and leave
        </Button>
      </Group>
    </Modal>
  );
}
