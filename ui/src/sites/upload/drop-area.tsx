import { Portal } from '@mantine/core';
import { useEffect, useEffectEvent, useState } from 'react';
import { UploadIcon } from '../../app/icons.tsx';
import styles from './upload.module.css';
import { type Picked, pickedFromDrop } from './picked.ts';

type DropProps = { readonly says: string; readonly onPicked: (picked: Picked) => void };

/** The whole page takes a folder or a file. Something else that is dragged, such as a link, is left to the browser. */
export function DropArea({ says, onPicked }: DropProps) {
  const isOver = useDrop(onPicked);
  if (!isOver) return null;
  return (
    <Portal>
      <div className={styles['drop']}>
        <p>
          <UploadIcon size={36} />
          {says}
        </p>
      </div>
    </Portal>
  );
}

function useDrop(onPicked: (picked: Picked) => void): boolean {
  const [isOver, setOver] = useState(false);
  const take = useEffectEvent((picked: Picked) => onPicked(picked));
  useEffect(() => {
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') === true;
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      // Without this the browser opens the file instead.
      event.preventDefault();
      if (event.dataTransfer !== null) event.dataTransfer.dropEffect = 'copy';
      setOver(true);
    };
    // It leaves one element for the next all the time; it leaves the window only towards nothing.
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent) => {
      if (!hasFiles(event) || event.dataTransfer === null) return;
      event.preventDefault();
      setOver(false);
      void pickedFromDrop(event.dataTransfer).then((picked) => {
        if (picked !== null) take(picked);
      });
    };
    document.addEventListener('dragenter', over);
    document.addEventListener('dragover', over);
    document.addEventListener('dragleave', leave);
    document.addEventListener('drop', drop);
    return () => {
      document.removeEventListener('dragenter', over);
      document.removeEventListener('dragover', over);
      document.removeEventListener('dragleave', leave);
      document.removeEventListener('drop', drop);
    };
  }, []);
  return isOver;
}
