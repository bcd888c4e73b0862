import { Alert, Button, Portal } from '@mantine/core';
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import { UploadIcon } from '../../shell/icons.tsx';
import { countOf } from '../../shell/count.ts';
import styles from './upload.module.css';
import { type Picked, pickedFromDrop } from './picked.ts';

type DropProps = { readonly says: string; readonly onPicked: (picked: Picked) => void };

type DropState =
  | { readonly kind: 'idle' | 'over' | 'unreadable' }
  | { readonly kind: 'reading'; readonly files: number };

/** The whole page takes a folder or a file. The browser handles other drags, such as a link. */
export function DropArea({ says, onPicked }: DropProps) {
  const { state, stop } = useDrop(onPicked);
  if (state.kind === 'idle') return null;
  return (
    <Portal>
      {state.kind === 'over' && (
        <div className={styles['drop']}>
          <p>
            <UploadIcon size={36} />
            {says}
          </p>
        </div>
      )}
      {state.kind === 'reading' && (
        <div className={styles['reading']}>
          <span role="status">Reading the folder: {countOf(state.files, 'file')}</span>
          <Button size="xs" variant="default" onClick={stop}>
            Cancel
          </Button>
        </div>
      )}
      {state.kind === 'unreadable' && (
        <div className={styles['reading']}>
          <Alert color="red" role="alert" title="The dropped files could not be read">
            The browser may not read one of the files, or a file was moved in the meantime. Check that you can
            open all of them, then drop them again.
          </Alert>
          <Button size="xs" variant="default" onClick={stop}>
            Close
          </Button>
        </div>
      )}
    </Portal>
  );
}

function useDrop(onPicked: (picked: Picked) => void): { state: DropState; stop: () => void } {
  const [state, setState] = useState<DropState>({ kind: 'idle' });
  const running = useRef<AbortController>(null);
  const take = useEffectEvent((picked: Picked) => onPicked(picked));

  function stop(): void {
    running.current?.abort();
    setState({ kind: 'idle' });
  }

  useEffect(() => {
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') === true;
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      // Without this the browser opens the file instead.
      event.preventDefault();
      if (event.dataTransfer !== null) event.dataTransfer.dropEffect = 'copy';
      setState({ kind: 'over' });
    };
    // The drag leaves one element for the next all the time; only without a next element has it left the window.
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setState({ kind: 'idle' });
    };
    const read = async (transfer: DataTransfer, { signal }: AbortController) => {
      const tell = (files: number) => setState({ kind: 'reading', files });
      tell(0);
      try {
        const picked = await pickedFromDrop(transfer, { signal, tell });
        setState({ kind: 'idle' });
        if (picked !== null) take(picked);
      } catch {
        if (!signal.aborted) setState({ kind: 'unreadable' });
      }
    };
    const drop = (event: DragEvent) => {
      if (!hasFiles(event) || event.dataTransfer === null) return;
      event.preventDefault();
      running.current?.abort();
      running.current = new AbortController();
      void read(event.dataTransfer, running.current);
    };
    document.addEventListener('dragenter', over);
    document.addEventListener('dragover', over);
    document.addEventListener('dragleave', leave);
    document.addEventListener('drop', drop);
    return () => {
      running.current?.abort();
      document.removeEventListener('dragenter', over);
      document.removeEventListener('dragover', over);
      document.removeEventListener('dragleave', leave);
      document.removeEventListener('drop', drop);
    };
  }, []);
  return { state, stop };
}
