import { Button } from '@mantine/core';
import { useRef } from 'react';
import { FileIcon, FolderIcon } from '../../shell/icons.tsx';
import styles from '../../shell/page.module.css';
import { type Picked, pickedFromInput } from './picked.ts';

declare module 'react' {
  interface InputHTMLAttributes<T> {
    /** Makes the input choose a whole folder. `T` belongs to the declaration that this extends. */
    webkitdirectory?: T extends HTMLInputElement ? string : never;
  }
}

/** The same as dropping, by buttons. */
export function Picker({ onPicked }: { onPicked: (picked: Picked) => void }) {
  const folder = useRef<HTMLInputElement>(null);
  const file = useRef<HTMLInputElement>(null);

  function take(input: HTMLInputElement): void {
    const picked = pickedFromInput([...(input.files ?? [])]);
    // The same folder chosen again is a choice, too.
    input.value = '';
    if (picked !== null) onPicked(picked);
  }

  return (
    <div className={styles['actions']}>
      <Button leftSection={<FolderIcon />} onClick={() => folder.current?.click()}>
        Choose a folder
      </Button>
      <Button variant="default" leftSection={<FileIcon />} onClick={() => file.current?.click()}>
        Choose a file
      </Button>
      <input
        ref={folder}
        type="file"
        hidden
        webkitdirectory=""
        aria-label="Folder to publish"
        onChange={({ currentTarget }) => take(currentTarget)}
      />
      <input
        ref={file}
        type="file"
        hidden
        accept=".zip,.tgz,.gz,.html,.htm"
        aria-label="File to publish"
        onChange={({ currentTarget }) => take(currentTarget)}
      />
    </div>
  );
}
