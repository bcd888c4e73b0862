import { Button } from '@mantine/core';
import { useId, useRef, useState } from 'react';
import { copyFrom } from '../../shell/copy.ts';
import { CopyIcon, DownloadIcon } from '../../shell/icons.tsx';
import styles from './issued-dialog.module.css';

type FieldProps = {
  label: string;
  value: string;
  /** Name and content of the download. */
  fileName: string;
  file: string;
};

/** A value to copy or to download. */
export function ValueField({ label, value, fileName, file }: FieldProps) {
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
    <>
      <div className={styles['field']}>
        <label htmlFor={id}>{label}</label>
        <textarea
          id={id}
          ref={field}
          className={styles['value']}
          rows={1}
          readOnly
          spellCheck={false}
          autoComplete="off"
          data-autofocus
          value={value}
          onFocus={({ currentTarget }) => currentTarget.select()}
        />
      </div>
      <div className={styles['actions']}>
        <Button leftSection={<CopyIcon />} onClick={() => void copy()}>
          Copy
        </Button>
        <Button variant="default" leftSection={<DownloadIcon />} onClick={() => download(fileName, file)}>
          Download as file
        </Button>
        <span role="status" className={styles['copied']}>
          {copied}
        </span>
      </div>
    </>
  );
}

/** The browser's copy in memory is released immediately. */
function download(name: string, content: string): void {
  const address = URL.createObjectURL(new Blob([content], { type: 'text/plain' }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}
