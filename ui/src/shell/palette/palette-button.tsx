import { Button } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { lazy, Suspense, useState } from 'react';
import { SearchIcon } from '../icons.tsx';
import styles from './palette-button.module.css';

const Palette = lazy(async () => ({ default: (await import('./palette.tsx')).Palette }));

/** Opens the command palette, which is loaded on first use. */
export function PaletteButton() {
  const [isOpen, setOpen] = useState(false);
  const [wasAsked, setAsked] = useState(false);
  const open = () => {
    // Nothing may cover an open dialog, least of all one that shows a key.
    if (document.querySelector('[role="dialog"]') !== null) return;
    setAsked(true);
    setOpen(true);
  };
  useHotkeys([['mod+K', open]], []);
  return (
    <>
      <Button
        className={styles['button']}
        variant="default"
        size="sm"
        leftSection={<SearchIcon size={16} />}
        rightSection={<kbd className={styles['keys']}>Ctrl K</kbd>}
        aria-keyshortcuts="Control+K Meta+K"
        aria-haspopup="dialog"
        onClick={open}
      >
        <span className={styles['label']}>Go to…</span>
      </Button>
      {wasAsked && (
        <Suspense fallback={null}>
          <Palette isOpen={isOpen} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
