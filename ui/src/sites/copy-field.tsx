import { Button } from '@mantine/core';
import { useId, useRef, useState } from 'react';
import { copyFrom } from '../shell/copy.ts';
import { CopyIcon } from '../shell/icons.tsx';
import styles from './copy-field.module.css';

/** An address or a line to copy. If the browser refuses to copy it, the text is selected. */
export function CopyField({ label, value }: { label: string; value: string }) {
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const [said, setSaid] = useState('');

  async function copy(): Promise<void> {
    if (field.current === null) return;
    setSaid((await copyFrom(field.current)) ? 'Copied' : 'Selected; copy it with the keyboard');
  }

  return (
    <div className={styles['field']}>
      <label htmlFor={id}>{label}</label>
      <div className={styles['row']}>
        <input
          id={id}
          ref={field}
          readOnly
          value={value}
          spellCheck={false}
          onFocus={({ currentTarget }) => currentTarget.select()}
        />
        <Button
          variant="default"
          leftSection={<CopyIcon size={16} />}
          aria-label={`Copy ${label.toLowerCase()}`}
          onClick={() => void copy()}
        >
          Copy
        </Button>
      </div>
      <span role="status" className={styles['said']}>
        {said}
      </span>
    </div>
  );
}
