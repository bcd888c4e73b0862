import { Button } from '@mantine/core';
import { useRef, useState } from 'react';
import { copyFrom } from './copy.ts';
import { CopyIcon } from './icons.tsx';
import styles from './command.module.css';

/** Shell commands with a button that copies them. `of` is a short text that says what they do. */
export function Command({ text, of }: { text: string; of: string }) {
  const lines = useRef<HTMLPreElement>(null);
  const [copied, setCopied] = useState('');

  async function copy(): Promise<void> {
    if (lines.current === null) return;
    const isCopied = await copyFrom(lines.current);
    setCopied(
      isCopied ? 'Copied.' : 'The browser refused. The lines are selected: copy them with the keyboard.',
    );
  }

  return (
    <div className={styles['command']}>
      {/* On a narrow screen it scrolls, so the keyboard has to reach it. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre ref={lines} tabIndex={0} aria-label={`Commands: ${of}`}>
        {text}
      </pre>
      <div>
        <Button
          size="compact-sm"
          variant="default"
          leftSection={<CopyIcon size={15} />}
          aria-label={`Copy the commands: ${of}`}
          onClick={() => void copy()}
        >
          Copy
        </Button>
        <span role="status" className="quiet">
          {copied}
        </span>
      </div>
    </div>
  );
}
